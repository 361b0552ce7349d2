"""Promises of a diagnosis: its order, what it owns up to, and that every way to ask gives the same."""

from collections.abc import Iterator

import duckdb
import httpx
import msgspec
import pytest
from kvtrail_collector.attribution_shapes import NO_CODE, Attribution, Outcome, Verdict, Window
from kvtrail_collector.diagnose import diagnose
from kvtrail_collector.diagnose_file import diagnose_lines, events_of_lines, scene_of
from kvtrail_collector.diagnose_shapes import Verdicts
from kvtrail_collector.errors import NoEvents
from kvtrail_collector.testing import running_collector
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import CONTENT_TYPE, encode_batch
from kvtrail_schema.enums import Stage
from kvtrail_schema.events import EventsDropped
from kvtrail_schema.identity import Stream
from kvtrail_schema.jsonl import read_lines, write_line
from kvtrail_schema.reasons import DropReason

from tests.cases.stories import FOLDER, numbered
from tests.collector.frames import header


def lines_of(case: str, stem: str = "fires") -> list[str]:
    """The lines of a case."""
    return (FOLDER / case / f"{stem}.jsonl").read_text().splitlines()


def population(code: str, tier: str | None, share: float = 0.9) -> Attribution:
    """An attribution with one verdict."""
    window = Window(0, 1, 100, 1.0)
    verdict = Verdict(code, tier, None, None, share, 0.99, "population", window, {}, (), "act")
    return Attribution(window=window, verdicts=(verdict,))


def judged(case: str, attribution: Attribution | None = None) -> list[str]:
    """The codes of a case, beside what windows say."""
    with duckdb.connect() as connection:
        found = diagnose(scene_of(connection, events_of_lines(lines_of(case))), attribution)
        return [verdict.code for verdict in found.verdicts]


def test_data_first_then_hangs_then_windows() -> None:
    """What endangers data stands first, then hangs, then population verdicts, then mechanisms (LEDGER §6)."""
    told = population("LOOKUP_BOUND", None)

    assert ["CORRUPT_BLOCK", "LOOKUP_BOUND"] == judged("torn-block", told)
    assert ["STUCK_LOAD", "LOOKUP_BOUND"] == judged("partial-then-silence", told)
    assert ["LOOKUP_BOUND", "SUBMIT_BOUND"] == judged("submit-before-forward", told)
    assert ["LOOKUP_BOUND", "GAP"] == judged("hole-in-the-middle", told)


def test_the_same_is_told_once() -> None:
    """What windows say of a tier, counts do not say again; and counts never take a population verdict away."""
    assert ["TIER_QUEUE"] == judged("queue-behind-writes", population("TIER_QUEUE", "nvme"))
    assert ["TIER_SLOW", "PAGEABLE_COPY"] == judged("pageable-buffers", population("TIER_SLOW", "host"))


def test_the_more_specific_word_stands() -> None:
    """The general code is listed under `also`."""
    found = diagnose_lines(lines_of("places-held-by-stuck-loads"))

    assert ["LEAK_BY_STUCK_LOADS"] == [verdict.code for verdict in found.verdicts]
    assert "STUCK_LOAD" in found.verdicts[0].also


@pytest.mark.parametrize("why_not", ["not identifiable: copy leads in only 61% of resamples", None])
def test_a_spike_that_nobody_can_explain_is_no_good_news(why_not: str | None) -> None:
    """Where requests were slower and no verdict stands, the answer says so, and why, with what a reader has to know."""
    spike = Attribution(window=Window(0, 1, 100, 1.0), outcome=Outcome.UNDECIDED, why_not=why_not, notes=("nvme fills",))
    with duckdb.connect() as connection:
        found = diagnose(scene_of(connection, events_of_lines(lines_of("torn-block", "control"))), spike)

    assert (why_not or NO_CODE) == found.unexplained
    assert ("nvme fills",) == found.notes
    assert () == found.verdicts


@pytest.mark.parametrize(
    "attribution",
    [
        population("LOOKUP_BOUND", None),
        Attribution(window=Window(0, 1, 100, 1.0), outcome=Outcome.NOTHING_SLOWER, why_not="no slower"),
        Attribution(why_not="too few requests"),
        None,
    ],
    ids=["explained", "not slower", "no spike", "not asked"],
)
def test_no_spike_is_left_unexplained(attribution: Attribution | None) -> None:
    """One that has a verdict, a window that is no slower, and none at all are nothing to worry about."""
    with duckdb.connect() as connection:
        found = diagnose(scene_of(connection, events_of_lines(lines_of("torn-block", "control"))), attribution)

    assert found.unexplained is None


def test_what_is_missing_is_said() -> None:
    """A log without durations or heartbeats says which codes could not be judged for that."""
    found = {one.kind: one.so_what for one in diagnose_lines(lines_of("torn-block")).missing}

    assert "AGENT_DEAD, ENGINE_STALL" in found["agent_heartbeat"]
    assert "TIER_QUEUE" in found["swap_in_loaded with io_ns or copy_ns"]


def test_unreadable_lines_are_counted() -> None:
    """Garbage is named with its line, and costs coverage."""
    lines = lines_of("submit-before-forward")
    found = diagnose_lines([*lines[:3], "{garbage", *lines[3:]])

    assert 12 / 13 == pytest.approx(found.coverage)
    assert "1 lines" == found.missing[0].kind
    assert "<lines>:4" in found.missing[0].so_what
    assert all(verdict.confidence <= found.coverage for verdict in found.verdicts)


def test_of_nothing_nothing_can_be_said() -> None:
    """An empty file is neither well nor ill; lines in its place that are no events are told with why."""
    with pytest.raises(NoEvents, match="it is empty"):
        diagnose_lines([])
    with pytest.raises(NoEvents, match="none of its 1 lines is an event"):
        diagnose_lines(["nothing"])


def test_as_many_lost_as_absent_is_no_hang() -> None:
    """Where the closing event may be one of those lost, the hang is doubted aloud instead of claimed."""
    lines = [
        '{"t_ms": 0, "seq": 1, "kind": "request_arrived", "req": "x", "tokens": 9}',
        '{"t_ms": 1, "seq": 2, "kind": "swap_in_queued", "req": "x", "op": "o", "block": "b", "src": "nvme", "dst": "gpu"}',
        '{"t_ms": 90000, "seq": 4, "kind": "request_finished", "req": "y", "tokens": 3}',
    ]
    found = diagnose_lines(lines)

    assert ["GAP"] == [verdict.code for verdict in found.verdicts]
    assert "STUCK_LOAD" in {one.kind: one.so_what for one in found.missing}["lost events"]


def after_retention(case: str) -> list[str]:
    """The lines of a case whose seqs begin behind 4,000 that expired."""
    moved = [
        (line, msgspec.structs.replace(line.event, seq=line.event.seq + 4_000))
        for line in numbered(FOLDER / case / "fires.jsonl")
    ]
    last = max(event.seq for _, event in moved)
    return [*(write_line(line.stream, event) for line, event in moved), expired_of(moved[0][0].stream, last + 1)]


def expired_of(stream: Stream, seq: int) -> str:
    """The word of a collector that let the first 4,000 events go, with the seq behind all others."""
    told = EventsDropped(
        seq=seq, t_ns=0, stage=Stage.COLLECTOR, reason=DropReason.RETENTION, first_seq=1, last_seq=4_000, count=4_000
    )
    return write_line(stream, told)


@pytest.mark.parametrize(
    "case", ["partial-then-silence", "places-held-by-stuck-loads", "read-of-a-released-copy", "double-unpin"]
)
def test_what_expired_explains_no_absence_that_follows(case: str) -> None:
    """A load whose beginning is stored has its end stored, too, if there is one: retention takes the oldest first."""
    found, whole = diagnose_lines(after_retention(case)), diagnose_lines(lines_of(case))

    assert whole.verdicts[0].code == found.verdicts[0].code
    assert 1.0 == found.verdicts[0].confidence
    assert "lost events" not in {one.kind for one in found.missing}


@pytest.mark.parametrize(
    ("code", "case"),
    [
        ("BROKEN_PREFIX", "heads-left-out"),
        ("READ_AFTER_INVALIDATE", "read-after-revocation"),
        ("NAMESPACE_VIOLATION", "adapter-not-in-the-key"),
        ("PIN_LEAK", "pins-without-loads"),
    ],
)
def test_what_expired_may_be_what_seems_never_to_have_been(code: str, case: str) -> None:
    """The head of a prefix, or a creation, may be older than all that is stored: the verdict is doubted aloud."""
    found = diagnose_lines(after_retention(case))

    assert code in {verdict.code for verdict in diagnose_lines(lines_of(case)).verdicts}
    assert code not in {verdict.code for verdict in found.verdicts}
    assert code in {one.kind: one.so_what for one in found.missing}["lost events"]


@pytest.fixture(name="client")
def client_of_a_collector() -> Iterator[httpx.Client]:
    """A client of a collector that holds a case."""
    events = [line.event for line in read_lines(lines_of("best-effort-loses"))]
    body = encode_batch(header([event.seq for event in events]), table_of(events))
    with running_collector() as running, httpx.Client(base_url=running.url, timeout=60.0, trust_env=False) as client:
        client.post("/v1/events", content=body, headers={"content-type": CONTENT_TYPE}).raise_for_status()
        yield client


def test_a_collector_says_what_the_file_says(client: httpx.Client) -> None:
    """Over HTTP, after codec and store, the verdicts are those of the file; and the second answer is the first."""
    told = msgspec.json.decode(client.get("/v1/verdicts").content, type=Verdicts)
    expected = diagnose_lines(lines_of("best-effort-loses"))

    assert [] == [one for one in told.missing if "could not be computed" in one.so_what]
    assert [("PREFETCH_WASTE", "nvme")] == [(verdict.code, verdict.tier) for verdict in told.verdicts]
    assert [verdict.evidence for verdict in expected.verdicts] == [verdict.evidence for verdict in told.verdicts]
    assert client.get("/v1/verdicts").json() == msgspec.json.decode(msgspec.json.encode(told))


def test_bounds_bound_what_is_judged(client: httpx.Client) -> None:
    """Events outside the bounds are not looked at."""
    assert [] == client.get("/v1/verdicts", params={"start_ns": 10**15, "end_ns": 10**16}).json()["verdicts"]
    assert 422 == client.get("/v1/verdicts", params={"start_ns": 5}).status_code


def test_the_account_of_prefetching_adds_up(client: httpx.Client) -> None:
    """Issued is used, wasted, cancelled and pending; wasted is the sum of its reasons; time is what the loads took."""
    account = client.get("/v1/prefetch").json()
    row = account["rows"][0]

    assert 30 == row["issued"] == row["used"] + row["wasted"] + row["cancelled"] + row["pending"]
    assert {"too_late": 25} == row["wasted_by"]
    assert (5 * 1_200_000_000, 25 * 1_200_000_000) == (row["hidden_ns"], row["caused_ns"])
    assert (30 * 2**21, 5 * 2**21) == (row["bytes"], row["used_bytes"])
    assert "nvme" == row["tier"]
