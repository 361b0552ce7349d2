"""The batch codec: what was sent is what is read, or an error says why not."""

from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_schema.arrow_schema import EVENT_SCHEMA, EXTRA, UnknownEvent, events_of, table_of
from kvtrail_schema.batch import VERSION, BatchHeader, DropRange, StreamState, decode_batch, encode_batch, peek_header
from kvtrail_schema.clock import Clocks
from kvtrail_schema.enums import Stage
from kvtrail_schema.errors import BodyInvalid
from kvtrail_schema.events import Event, StepStarted
from kvtrail_schema.identity import LARGEST_ID, StepId
from kvtrail_schema.kinds import Kind
from kvtrail_schema.reasons import DropReason

from tests.schema.frames import forged, frame_of, header_for, header_of, plain_table, stream_of
from tests.strategies import TEXTS, streams

IDS = st.integers(0, LARGEST_ID)
TIMES = st.integers(-(2**63), 2**63 - 1)


@st.composite
def drop_ranges(draw: st.DrawFn) -> DropRange:
    """Ranges of dropped seqs, of any stage and reason."""
    first, last = sorted(draw(st.lists(st.integers(1, LARGEST_ID), min_size=2, max_size=2)))
    stage, reason = draw(st.sampled_from(Stage)), draw(st.sampled_from(DropReason))
    return DropRange(stage, reason, first, last, draw(st.integers(0, last - first + 1).map(lambda n: min(n, LARGEST_ID))))


HEARTBEATS = st.builds(
    BatchHeader,
    version=st.just(VERSION),
    engine=TEXTS.filter(bool),
    epoch=IDS,
    rank=st.integers(0, 2**16 - 2),
    first_seq=st.just(0),
    last_seq=st.just(0),
    count=st.just(0),
    produced=IDS,
    clocks=st.builds(Clocks, monotonic_ns=TIMES, wall_ns=TIMES, error_ns=TIMES),
    state=st.sampled_from(StreamState),
    drops=st.lists(drop_ranges(), max_size=3).map(tuple),
)


@given(events=streams())
def test_any_sequence_of_events_survives(events: list[Event]) -> None:
    """Whatever the engine said arrives: each event, each field, in order, from any clock."""
    decoded = decode_batch(frame_of(events))

    assert events == events_of(decoded.table)


@given(header=HEARTBEATS)
def test_any_header_survives(header: BatchHeader) -> None:
    """A heartbeat without rows carries produced, drops, clocks and state unchanged."""
    decoded = decode_batch(encode_batch(header, table_of([])))

    assert header == decoded.header
    assert decoded.table.num_rows == 0


@given(events=streams(min_size=1))
def test_decoded_table_has_the_pinned_schema(events: list[Event]) -> None:
    """Two batches can always be merged: the same columns, types and order, whatever happened to be null."""
    expected = EVENT_SCHEMA.append(pa.field(EXTRA, pa.utf8()))

    assert expected == decode_batch(frame_of(events)).table.schema
    assert expected == decode_batch(frame_of([])).table.schema


@given(events=streams(min_size=1))
def test_header_says_what_the_body_holds(events: list[Event]) -> None:
    """The count and the size of the body are the encoder's own; a caller cannot get them wrong."""
    lying = msgspec.structs.replace(header_for(events), count=999, body_bytes=1)
    header = peek_header(encode_batch(lying, table_of(events)))

    assert len(events) == header.count
    assert decode_batch(encode_batch(lying, table_of(events))).header == header


def test_frame_may_lie_in_any_buffer() -> None:
    """A frame is read where it lies: bytes, or a view of a request's body."""
    frame = frame_of([StepStarted(seq=1, step=StepId(3))])
    framed = memoryview(b"before" + frame + b"after")[6 : 6 + len(frame)]

    assert decode_batch(frame).table == decode_batch(framed).table


def test_columns_without_values_do_not_travel() -> None:
    """Fifty empty columns cost nothing on the wire."""
    events = [StepStarted(seq=n, t_ns=n, step=StepId(n)) for n in range(1, 4097)]

    assert len(frame_of(events)) < 10 * len(events)


def test_unknown_columns_are_kept() -> None:
    """What a newer sender wrote is kept as JSON beside the row, and rows without it have nothing there."""
    table = plain_table(
        3,
        zone=pa.array(["a", None, "b"]),
        spin_ns=pa.array([None, None, 5], pa.uint64()),
        share=pa.array([0.5, None, None], pa.float64()),
        raw=pa.array([b"\xff", None, None], pa.binary()),
    )
    expected = ['{"raw":"/w==","share":0.5,"zone":"a"}', None, '{"spin_ns":5,"zone":"b"}']
    decoded = decode_batch(forged(header_of(1, 3), stream_of(table)))

    assert expected == decoded.table[EXTRA].to_pylist()
    assert all(kind == Kind.STEP_STARTED for kind in decoded.table["kind"].to_pylist())


def test_unknown_kind_is_kept() -> None:
    """An event of a newer sender is no reason to lose it or its neighbours."""
    table = plain_table(2, kind=pa.array([9_999, 10], pa.uint16()))
    unknown, known = events_of(decode_batch(forged(header_of(1, 2), stream_of(table))).table)

    assert known == StepStarted(seq=2, step=StepId(1))
    assert unknown == UnknownEvent(seq=1, t_ns=0, kind=9_999, fields={"step": 0}, problem="9999 is not a valid Kind")


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(Kind.REQUEST_PREEMPTED, "reason", 250), (Kind.REQUEST_PREEMPTED, "reason", 10), (Kind.REQUEST_ADMITTED, "tier", 1)],
    ids=["a number that no list has", "a reason of another kind", "a field of another kind"],
)
def test_unknown_values_and_fields_are_kept(kind: Kind, name: str, value: int) -> None:
    """What a newer version may say of a known kind is kept, with the field that kept it from having a type."""
    row: dict[str, pa.Array[Any]] = {"kind": pa.array([kind], pa.uint16()), "req": pa.array([4], pa.uint64())}
    row[name] = pa.array([value], pa.uint8())
    (event,) = events_of(decode_batch(forged(header_of(1, 1), stream_of(plain_table(1, **row)))).table)

    assert isinstance(event, UnknownEvent)
    assert value == event.fields[name]
    assert kind == event.kind
    assert name in event.problem


def test_missing_required_field_is_no_reason_to_lose_the_event() -> None:
    """A row that lacks what its kind needs is kept as unknown, with the field named."""
    table = plain_table(1, step=pa.array([None], pa.uint64()))
    (event,) = events_of(decode_batch(forged(header_of(1, 1), stream_of(table))).table)

    assert isinstance(event, UnknownEvent)
    assert "step" in event.problem


def test_narrow_integers_are_widened() -> None:
    """A sender may pack integers more tightly than the schema; a reader sees the pinned types."""
    table = plain_table(2, step=pa.array([1, 255], pa.uint8()), seq=pa.array([1, 2], pa.int32()))
    decoded = decode_batch(forged(header_of(1, 2), stream_of(table)))
    expected = pa.chunked_array([pa.array([1, 255], pa.uint64())])

    assert expected == decoded.table["step"]


@pytest.mark.parametrize("name", ["step", "seq"])
def test_numbers_that_do_not_fit_are_refused(name: str) -> None:
    """No number is cut or wrapped to fit its column."""
    table = plain_table(1, **{name: pa.array([-1], pa.int64())})

    with pytest.raises(BodyInvalid):
        decode_batch(forged(header_of(1, 1), stream_of(table)))
