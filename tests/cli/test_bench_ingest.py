"""Promises of `kvtrail bench ingest`: the mix is what it says it is, and the figures come from a real run."""

import msgspec
import pytest
from kvtrail_cli.bench.mix import EVENTS_A_REQUEST, Mix
from kvtrail_cli.bench.shapes import IngestBench
from kvtrail_cli.main import APP
from kvtrail_schema.arrow_schema import UnknownEvent, events_of
from kvtrail_schema.batch import decode_batch
from typer.testing import CliRunner


def test_the_mix_is_as_hard_as_it_says() -> None:
    """A hundred events a request, at least twelve columns, ids of 64 bits, every event of a kind with its own fields."""
    table = Mix(20).table()
    filled = [name for name in table.column_names if table[name].null_count < table.num_rows]

    assert EVENTS_A_REQUEST == 100
    assert len(filled) >= 12
    assert max(value or 0 for value in table["block"].to_pylist()) > 2**60
    assert [event for event in events_of(table) if isinstance(event, UnknownEvent)] == []


def test_the_mix_travels_whole_and_is_the_same_every_time() -> None:
    """Frames hold every event once, in order; the same seed gives the same bytes."""
    frames = list(Mix(20, seed=3).frames(300))
    seqs = [seq for frame in frames for seq in decode_batch(frame).table["seq"].to_pylist()]

    assert seqs == list(range(1, 2_001))
    assert frames == list(Mix(20, seed=3).frames(300))


@pytest.mark.slow
@pytest.mark.parametrize("source", ["http", "kafka"])
def test_a_run_answers_in_its_shape(source: str, request: pytest.FixtureRequest) -> None:
    """A short run against a real collector, fed by calls or from a real broker, stores everything and fills in every figure."""
    own = ["--bootstrap", request.getfixturevalue("bootstrap")] if source == "kafka" else ["--readers", "1"]
    done = CliRunner().invoke(APP, ["bench", "ingest", "--source", source, "--events", "100000", *own, "--json"])
    found = msgspec.json.decode(done.stdout, type=IngestBench)

    assert (source, 100_000) == (found.source, found.events)
    assert min(found.events_per_s, found.rows_per_s_raw_duckdb, found.hot_bytes_per_event, found.sealed_bytes_per_event) > 0
    assert (found.lag_p99_ms is None) == (source == "kafka")
    assert found.growth[-1].rows == found.events
