"""What the pages are measured on, and, in the long form, that they are measured."""

import json
import os
from itertools import count

import pytest
from kvtrail_cli.bench import dashboard
from kvtrail_cli.bench.dashboard_load import SPAN_NS, one_more, parcels
from kvtrail_cli.bench.mix import EPOCH_BEGINS_NS
from kvtrail_dashboards.places import Place
from kvtrail_schema.batch import decode_batch

from tests.cli.test_verbs import kvtrail

LOADED = 10_000


def test_the_load_has_all_that_pages_show() -> None:
    """So many events at least, within the hour, with samples, heartbeats and prefetches; no hole in any stream."""
    batches = [decode_batch(parcel.frame) for parcel in parcels(LOADED)]
    kinds = {kind for batch in batches for kind in batch.table["kind"].to_pylist()}
    times = [int(at) for batch in batches for at in batch.table["t_ns"].to_pylist() if at is not None]
    holes = [batch for batch in batches if batch.header.count != batch.header.last_seq - batch.header.first_seq + 1]

    assert sum(batch.table.num_rows for batch in batches) >= LOADED
    assert {1, 6, 7, 33, 35, 37, 40, 41, 47, 58, 67} <= kinds
    assert EPOCH_BEGINS_NS <= min(times) <= max(times) < EPOCH_BEGINS_NS + 2 * SPAN_NS
    assert holes == []


def test_each_beat_is_one_more() -> None:
    """Pages are opened after an event that was not there before."""
    assert [1, 2] == [decode_batch(one_more(seq)).header.last_seq for seq in (1, 2)]


def test_a_page_over_its_budget_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds at P95 are its budget: one opening of many that takes longer is none of P95, one of a few is."""
    slow = iter([*[0.5] * 99, 9.0, *[0.5] * 4, 9.0])
    monkeypatch.setattr(dashboard, "_open", lambda _place, _beat, _asker: next(slow))
    asker = dashboard.Asker("", "")

    assert [True, False] == [dashboard._page(Place.NOW, loads, count(1), asker).within_budget for loads in (100, 5)]


@pytest.mark.skipif(os.environ.get("KVTRAIL_LONG") != "1", reason="a minute: make test-long")
def test_every_page_is_measured() -> None:
    """One figure for each page that there is, from a store of the size that was asked for, and whether it is fast enough."""
    done = kvtrail("bench", "dashboard", "--events", "100000", "--loads", "1", "--json")
    answer = json.loads(done.stdout)

    assert done.returncode == 0, done.stderr
    assert [place.path for place in Place] == [one["page"] for one in answer["pages"]]
    assert all(0 < one["p50_s"] <= one["p95_s"] for one in answer["pages"])
    assert [one["p95_s"] <= 2 for one in answer["pages"]] == [one["within_budget"] for one in answer["pages"]]
