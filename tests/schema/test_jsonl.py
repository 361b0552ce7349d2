"""JSON Lines for people: generous with form, strict with content, exact when written."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_schema import events as e
from kvtrail_schema.enums import Tier
from kvtrail_schema.errors import EventInvalid, JsonLinesError
from kvtrail_schema.events import Event
from kvtrail_schema.identity import LARGEST_ID, EventId, OpId, RequestId, Seq, StepId, Stream
from kvtrail_schema.jsonl import Line, id_of, read_file, read_lines, write_line
from kvtrail_schema.kinds import Kind, kind_of
from kvtrail_schema.reasons import ClearReason, WaitReason

from tests.strategies import TEXTS, events_of_kind, numbered, streams

STREAMS = st.builds(Stream, TEXTS.filter(bool), st.integers(0, LARGEST_ID), st.integers(0, 2**16 - 2))


def read(*rows: dict[str, Any]) -> list[Event]:
    """The events of some rows."""
    return [line.event for line in lines(*rows)]


def lines(*rows: dict[str, Any]) -> list[Line]:
    """The lines of some rows."""
    return list(read_lines(json.dumps(row) for row in rows))


@given(stream=STREAMS, events=streams())
def test_what_was_written_reads_back_equal(stream: Stream, events: list[Event]) -> None:
    """A file of lines holds exactly what happened: stream, order, every field."""
    expected = [Line(stream, event, number) for number, event in enumerate(events, start=1)]

    assert expected == list(read_lines(write_line(stream, event) for event in events))


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
@settings(max_examples=15)
@given(data=st.data())
def test_every_kind_reads_back_equal(kind: Kind, data: st.DataObject) -> None:
    """No kind has a field that the form for people cannot carry."""
    (event,) = numbered([data.draw(events_of_kind(kind))])
    stream = Stream("engine", 1, 0)  # type: ignore[arg-type]  # plain numbers read better here

    assert [event] == [line.event for line in read_lines([write_line(stream, event)])]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_could_not_be_read_back_is_not_written(value: float) -> None:
    """JSON has no infinities; a line that reads back as another event is never written."""
    stream = Stream("engine", 1, 0)  # type: ignore[arg-type]  # plain numbers read better here

    with pytest.raises(EventInvalid, match="counter_sampled: field 'value'"):
        write_line(stream, e.CounterSampled(text="hits", value=value))


@pytest.mark.parametrize(
    ("written", "expected_ns"), [("12.5", 12_500_000), ("12", 12_000_000), ("0", 0), ("-1", -1_000_000), ("0.0000005", 0)]
)
def test_milliseconds(written: str, expected_ns: int) -> None:
    """Times in ms are rounded to whole nanoseconds."""
    (line,) = read_lines([f'{{"t_ms": {written}, "kind": "step_started"}}'])

    assert expected_ns == line.event.t_ns


@given(st.integers(-(2**40), 2**40))
def test_units_of_time_mean_the_same(micros: int) -> None:
    """One moment has one meaning, in whichever unit it is written."""
    row = {"kind": "step_started", "step": 1}
    found = read(row | {"t_us": micros}, row | {"t_ns": micros * 1_000}, row | {"t_ms": micros / 1_000})

    assert {micros * 1_000} == {event.t_ns for event in found}


def test_durations_take_units_too() -> None:
    """The example of the contract, word by word."""
    text = (
        '{"t_ms": 12.5, "kind": "swap_in_loaded", "req": "r1", "op": 7, "block": "b7", "src": "nvme", "dst": "gpu",'
        ' "bytes": 2097152, "queue_ms": 3.1, "io_ms": 8.0}'
    )
    expected = e.SwapInLoaded(
        seq=1,
        t_ns=12_500_000,
        req=RequestId(id_of("r1")),
        op=OpId(7),
        block=id_of("b7"),  # type: ignore[arg-type]  # an id of a block, from its text
        src=Tier.NVME,
        dst=Tier.GPU,
        bytes=2_097_152,
        queue_ns=3_100_000,
        io_ns=8_000_000,
    )

    assert [expected] == [line.event for line in read_lines([text])]


@given(left=TEXTS, right=TEXTS)
def test_ids_may_be_any_text(left: str, right: str) -> None:
    """The same text is the same id wherever it stands; another text is another id; all of them fit."""
    rows = [{"t_ns": 0, "kind": "request_admitted", "req": text} for text in (left, right, left)]
    first, second, third = (event.req for event in read(*rows) if isinstance(event, e.RequestAdmitted))

    assert first == third
    assert (left == right) is (first == second)
    assert 0 <= first <= LARGEST_ID


def test_a_request_keeps_its_text() -> None:
    """Who wrote `r1` finds `r1` again: a text id of an arriving request is kept as its text, unless one is given."""
    row = {"t_ns": 0, "kind": "request_arrived", "req": "r1", "tokens": 5}
    own, given_text = read(row, row | {"text": "other"})

    assert own.text == "r1"  # type: ignore[attr-defined]  # the kind is on the line
    assert given_text.text == "other"  # type: ignore[attr-defined]  # the kind is on the line


def test_absent_numbers_are_filled_in() -> None:
    """Nobody numbers by hand what only numbers: seqs per stream, slots per place, steps by turn, ops one a row."""
    rows = [
        {"t_ns": 1, "kind": "step_started"},
        {"t_ns": 2, "kind": "block_created", "block": "a", "tier": "gpu"},
        {"t_ns": 3, "kind": "block_created", "block": "b", "tier": "gpu"},
        {"t_ns": 4, "kind": "evicted", "block": "a", "tier": "gpu", "reason": "capacity"},
        {"t_ns": 5, "kind": "step_finished", "tokens": 1},
        {"t_ns": 6, "kind": "step_started"},
        {"t_ns": 7, "kind": "swap_in_loaded", "src": "host", "dst": "gpu"},
        {"t_ns": 8, "kind": "swap_in_loaded", "src": "host", "dst": "gpu"},
        {"t_ns": 9, "kind": "step_started", "rank": 1},
    ]
    found = lines(*rows)
    slots = [line.event.slot for line in found if isinstance(line.event, e.BlockCreated | e.Evicted)]
    steps = [line.event.step for line in found if isinstance(line.event, e.StepStarted | e.StepFinished)]
    ops = [line.event.op for line in found if isinstance(line.event, e.SwapInLoaded)]

    assert [line.event.seq for line in found] == [*range(1, 9), 1]
    assert slots[0] == slots[2] != slots[1]
    assert steps == [1, 1, 2, 3]
    assert ops[0] != ops[1]
    assert {line.stream.engine for line in found} == {"engine"}


def test_given_seqs_are_kept_and_counted_on() -> None:
    """A hole that is written is a hole; numbering goes on behind it."""
    row = {"t_ns": 0, "kind": "step_started"}

    assert [event.seq for event in read(row, row | {"seq": Seq(7)}, row)] == [1, 7, 8]


def test_repeated_lines() -> None:
    """One line stands for many: times apart, ids with a suffix, seqs one after the other, numbers the same."""
    row = {"t_ms": 10, "kind": "copy_waited", "req": "r", "wait_ms": 2, "op": 5, "repeat": 3, "every_ms": 0.5}
    found = [event for event in read(row | {"seq": 4}) if isinstance(event, e.CopyWaited)]

    assert [event.t_ns for event in found] == [10_000_000, 10_500_000, 11_000_000]
    assert [event.seq for event in found] == [4, 5, 6]
    assert [id_of("r"), id_of("r#1"), id_of("r#2")] == [event.req for event in found]
    assert [5, id_of("5#1"), id_of("5#2")] == [event.op for event in found]
    assert {2_000_000} == {event.wait_ns for event in found}


def test_repeated_lines_stay_in_their_namespace() -> None:
    """A thousand blocks of one tenant are not a thousand tenants."""
    row = {"t_ns": 0, "kind": "prefix_hit", "req": "r", "block": "b", "tier": "gpu", "ns": "tenant", "repeat": 3}
    found = [event for event in read(row) if isinstance(event, e.PrefixHit)]

    assert {id_of("tenant")} == {event.ns for event in found}
    assert len({event.block for event in found}) == 3


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"kind": "QUEUED", "req": 1, "tokens": 2}, e.RequestArrived(seq=1, req=RequestId(1), tokens=2)),
        ({"kind": "ADMITTED", "req": 1}, e.RequestAdmitted(seq=1, req=RequestId(1))),
        ({"kind": "FIRST_TOKEN", "req": 1}, e.RequestFirstToken(seq=1, req=RequestId(1))),
        (
            {"kind": "create", "blk": 3, "par": 2, "copy": 4, "tier": "gpu"},
            e.BlockCreated(seq=1, block=3, parent=2, slot=4, tier=Tier.GPU),  # type: ignore[arg-type]  # plain numbers
        ),
        (
            {"kind": "swap_in_issued", "op": 1, "src": "nvme", "dst": "gpu", "recompute_est_ms": 55},
            e.SwapInQueued(seq=1, op=OpId(1), src=Tier.NVME, dst=Tier.GPU, recompute_estimate_ns=55_000_000),
        ),
        (
            {"kind": "swap_out_issued", "op": 1, "src": "gpu", "dst": "host"},
            e.SwapOutQueued(seq=1, op=OpId(1), src=Tier.GPU, dst=Tier.HOST),
        ),
        (
            {"kind": "swap_in_loaded", "op": 1, "src": "nvme", "dst": "gpu", "q_ms": 3},
            e.SwapInLoaded(seq=1, op=OpId(1), src=Tier.NVME, dst=Tier.GPU, queue_ns=3_000_000),
        ),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_shorthand(row: dict[str, Any], expected: Event) -> None:
    """The names in which incidents are written down are understood."""
    assert [expected] == read(row | {"t_ns": 0})


def test_names_of_kinds_and_members_take_any_case() -> None:
    """`GPU` is `gpu`, and `Request_Waiting` is a request that waits."""
    expected = e.RequestWaiting(seq=1, req=RequestId(1), reason=WaitReason.KV_LOAD)

    assert [expected] == read({"t_ns": 0, "kind": "Request_Waiting", "req": 1, "reason": "KV_Load"})


def test_nulls_are_absent() -> None:
    """A file exported from a table has a null in every column that an event does not fill."""
    expected = e.TierCleared(seq=1, tier=Tier.HOST, reason=ClearReason.MANUAL, id=EventId(4))
    row = {"t_ns": 0, "kind": "tier_cleared", "tier": "host", "reason": "manual", "id": 4, "queue_ms": None, "req": None}

    assert [expected] == read(row)


def test_empty_lines_and_comments_are_skipped_but_counted() -> None:
    """A number in an error is the number that an editor shows."""
    text = ["", "  ", "# a story", "  # and more", '{"t_ns": 1, "kind": "step_started"}']

    assert [line.number for line in read_lines(text)] == [5]


def test_files_are_read_as_lines(tmp_path: Path) -> None:
    """A file reads as its lines, and an error in it names the file."""
    path = tmp_path / "story.jsonl"
    path.write_text('{"t_ns": 1, "kind": "step_started", "step": 9}\n{"t_ns": 1}\n', encoding="utf-8")
    source = read_file(str(path))

    assert e.StepStarted(seq=1, t_ns=1, step=StepId(9)) == next(source).event
    with pytest.raises(JsonLinesError, match=f"{path}:2: field 'kind'"):
        next(source)


def test_kinds_of_repeated_lines() -> None:
    """Every event of a repeated line is of the line's kind."""
    found = read({"t_ns": 0, "kind": "request_admitted", "req": "r", "repeat": 4})

    assert [kind_of(event) for event in found] == [Kind.REQUEST_ADMITTED] * 4
