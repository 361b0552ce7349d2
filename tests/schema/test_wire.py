"""Bodies of version 3: any columns come back as they were, bytes that make no sense are refused, and what it costs."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_cli.bench.mix import Mix
from kvtrail_schema.arrow_schema import EVENT_SCHEMA, EXTRA, table_of
from kvtrail_schema.batch import Limits, decode_batch, encode_batch, peek_header
from kvtrail_schema.columns import COLUMNS
from kvtrail_schema.enums import Tier
from kvtrail_schema.errors import BodyInvalid, CodecError
from kvtrail_schema.events import BlockCreated, Event, StepStarted
from kvtrail_schema.header import encode_head, join_frame
from kvtrail_schema.identity import LARGEST_ID, BlockId, Slot, StepId
from kvtrail_schema.wire_columns import LENGTH, LENGTHS, WIRE_COLUMNS, Directory, needs_bytes
from kvtrail_schema.wire_write import write_body

from tests.schema.frames import frame_of, header_of, plain_table

LARGEST = 2**64 - 1
FEW_IDS = st.sampled_from([0, 1, 2, 7, LARGEST_ID])
EDGES: dict[str, list[int | None]] = {
    "block": [0, LARGEST, None, 1, LARGEST],
    "parent": [None, 0, LARGEST, None, 5],
    "req": [None, LARGEST, 0, LARGEST, 3],
    "slot": [2**32 - 1, 0, None, 7, 0],
    "tier": [255, None, 0, 3, 3],
    "dst": [None, 255, 0, None, None],
    "bytes": [LARGEST, 0, None, LARGEST, 1],
    "deadline_ns": [-(2**63), 2**63 - 1, 0, None, -1],
    "numa": [-(2**15), 2**15 - 1, None, 0, -1],
}


def edges() -> pa.Table:
    """The ends of what columns can hold, also those that no event may have: a table may come from anywhere."""
    known = {name: pa.array(values, EVENT_SCHEMA.field(name).type) for name, values in EDGES.items()}
    kinds = pa.array([65_535, 0, 38, 0, 38], pa.uint16())
    times = pa.array([2**63 - 1, -(2**63), 0, -1, 2**63 - 1], pa.int64())
    seqs = pa.array([1, 2, 2**63, LARGEST - 1, LARGEST], pa.uint64())
    return plain_table(5, **known, kind=kinds, t_ns=times, seq=seqs)


def test_the_ends_of_every_width_come_back() -> None:
    """The largest and smallest numbers, the values that mean "absent" in a ring, unknown kinds, times that jump."""
    sent = edges()
    found = decode_batch(encode_batch(header_of(1, LARGEST - 1, 5), sent.slice(0, 4))).table

    assert all(sent[name].slice(0, 4).combine_chunks() == found[name].combine_chunks() for name in sent.column_names)


def created(number: int, block: int, parent: int | None, slot: int) -> Event:
    """A block with its parent."""
    own = None if parent is None else BlockId(parent)
    return BlockCreated(seq=number + 1, t_ns=number, block=BlockId(block), tier=Tier.GPU, slot=Slot(slot), parent=own)


@given(rows=st.lists(st.tuples(FEW_IDS, st.none() | FEW_IDS, st.integers(0, 3)), min_size=1, max_size=60))
def test_ids_and_copies_that_come_again(rows: list[tuple[int, int | None, int]]) -> None:
    """Few ids on many rows, as block and as parent, in slots that change: each row has its own again."""
    table = table_of([created(number, *row) for number, row in enumerate(rows)])

    assert table == decode_batch(encode_batch(header_of(1, len(rows)), table)).table.drop_columns([EXTRA])


def test_an_id_travels_once() -> None:
    """A thousand rows about one block are no more than a few bytes beside it."""
    one = frame_of([created(0, 2**63 + 12_345, None, 7)])
    many = frame_of([created(number, 2**63 + 12_345, None, 7) for number in range(1_000)])

    assert len(many) < len(one) + 60


@pytest.mark.parametrize(("rows", "most_bytes"), [(64, 1_200), (256, 3_700), (4_096, 40_000)])
def test_wire_budget(rows: int, most_bytes: int) -> None:
    """An engine that records 50,000 events a second: at most ten bytes an event in full batches, little more in small ones."""
    frames = list(Mix(400, seed=7, request_every_ns=2_000_000).frames(rows))
    frame = frames[len(frames) // 2]

    assert len(frame) <= most_bytes
    assert rows == peek_header(frame).count


def test_a_single_event_is_small() -> None:
    """What a frame costs beside its events: header, checksum, directory."""
    assert len(frame_of([StepStarted(seq=1, t_ns=5, step=StepId(3))])) < 130


def test_columns_of_a_newer_sender_travel_by_name() -> None:
    """What has no number is kept as JSON beside its row, of every type that a column can have."""
    table = plain_table(
        3,
        zone=pa.array(["a", None, "bü"]),
        spin_ns=pa.array([None, None, LARGEST], pa.uint64()),
        lag_ns=pa.array([None, -5, None], pa.int64()),
        share=pa.array([0.5, None, None], pa.float64()),
        is_hot=pa.array([True, None, False]),
    )
    expected = [
        '{"is_hot":true,"share":0.5,"zone":"a"}',
        '{"lag_ns":-5}',
        '{"is_hot":false,"spin_ns":18446744073709551615,"zone":"bü"}',
    ]

    assert expected == decode_batch(encode_batch(header_of(1, 3), table)).table[EXTRA].to_pylist()


def test_every_column_has_its_number_for_ever() -> None:
    """Numbers on the wire are the places in one list, to which names are only added, in a new version."""
    assert set(WIRE_COLUMNS) == set(COLUMNS) - {"seq", "t_ns", "kind"}
    assert ("ns", "req", "block", "reason", "text") == tuple(WIRE_COLUMNS[number] for number in (0, 1, 2, 38, 71))
    assert len(WIRE_COLUMNS) == 72


def test_a_small_body_says_what_it_needs() -> None:
    """A million equal rows are some bytes: what their columns will take is told, held to the limit, and not taken before."""
    many = 1_000_000
    table = plain_table(many, seq=pa.array(range(1, many + 1), pa.uint64()), step=pa.array([1] * many, pa.uint64()))
    frame = encode_batch(header_of(1, many), table)

    assert len(frame) < 1_000
    assert peek_header(frame).body_bytes >= 8 * many * 4
    with pytest.raises(CodecError, match="are over the limit"):
        decode_batch(frame, limits=Limits(body_bytes=1 << 24))


EVENTS = [created(number, 2**62 + number % 5, 2**62 if number % 2 else None, number % 7) for number in range(40)]
PAYLOAD = write_body(table_of(EVENTS)).payload


def framed(payload: bytes, told_bytes: int) -> bytes:
    """A frame of forty rows with any body."""
    header = msgspec.structs.replace(header_of(1, 40), body_bytes=told_bytes)
    return join_frame(encode_head(header), payload)


def forged(directory: dict[str, Any] | None = None, inside: bytes | None = None) -> bytes:
    """A frame of forty rows with a changed directory, or any inside."""
    raw_bytes, inside_bytes = LENGTHS.unpack_from(PAYLOAD)
    raw, packed = PAYLOAD[LENGTHS.size : LENGTHS.size + raw_bytes], PAYLOAD[LENGTHS.size + raw_bytes :]
    content = bytes(pa.Codec("zstd").decompress(packed, decompressed_size=inside_bytes))
    (size,) = LENGTH.unpack_from(content)
    head = msgspec.msgpack.decode(content[LENGTH.size : LENGTH.size + size], type=Directory)
    told = msgspec.structs.replace(head, **(directory or {}))
    encoded = msgspec.msgpack.encode(told)
    whole = LENGTH.pack(len(encoded)) + encoded + content[LENGTH.size + size :] if inside is None else inside
    body = LENGTHS.pack(len(raw), len(whole)) + raw + pa.Codec("zstd").compress(whole, asbytes=True)
    return framed(body, needs_bytes(len(whole), 40, len(told.columns)))


def test_the_forger_is_honest_when_nothing_is_changed() -> None:
    """What the tests below change is a body that is read."""
    assert len(EVENTS) == decode_batch(forged()).table.num_rows


NONSENSE: dict[str, dict[str, Any]] = {
    "a column of no known number": {"columns": [2, 3, 4, 72]},
    "a column below the first": {"columns": [2, 3, 4, -1]},
    "a column twice": {"columns": [2, 3, 2, 7]},
    "the seqs as a column": {"columns": [2, 3, 4, "seq"]},
    "a column of the wrong type": {"columns": [2, 3, 4, 71]},
    "codings missing": {"codings": b"\5"},
    "a coding that is none": {"codings": b"\5\x17\0\x0f"},
    "ids that go on with nothing": {"codings": b"\7\7\0\x08"},
    "kinds missing": {"kinds_of": b""},
    "kinds too many": {"kinds_of": bytes(9)},
    "no bases": {"bases": []},
    "a base below nothing": {"bases": [-1, 0]},
    "a base beyond its width": {"bases": [LARGEST, LARGEST]},
    "no shapes": {"shapes": []},
    "a shape too many": {"shapes": [0] * 99},
    "a shape below nothing": {"shapes": [-5] * 20},
    "a shape too wide": {"shapes": [9] * 20},
    "a time beyond its width": {"first_t_ns": 2**63},
    "other rows than the header says": {"first_seq": 2},
}  # fmt: skip


@pytest.mark.parametrize("changes", NONSENSE.values(), ids=NONSENSE)
def test_a_directory_that_makes_no_sense_is_refused(changes: dict[str, Any]) -> None:
    """Whatever a directory claims, nothing is read that is not there, and no row is made up."""
    with pytest.raises(BodyInvalid):
        decode_batch(forged(changes))


def test_a_directory_is_bounded_before_it_is_read() -> None:
    """Two million equal numbers are some bytes in a frame: no list of them is made."""
    frame = forged({"shapes": [0] * 2_000_000})
    tracemalloc.start()
    try:
        with pytest.raises(BodyInvalid, match="a directory of"):
            decode_batch(frame)
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(frame) < 1_000
    assert most_bytes < 1 << 20


@pytest.mark.parametrize("told_bytes", [0, 1, 10**8])
def test_a_body_needs_what_its_header_told(told_bytes: int) -> None:
    """Memory is promised in the header, and the promise is exact."""
    with pytest.raises(BodyInvalid):
        decode_batch(framed(PAYLOAD, told_bytes))


@pytest.mark.parametrize("flip", [0xFF, 0x01, 0x80])
def test_no_byte_of_a_forged_body_breaks_the_reader(flip: int) -> None:
    """With a checksum that holds, every byte is hostile: those outside of the compression, and those inside."""
    told = peek_header(frame_of(EVENTS)).body_bytes
    for position in range(len(PAYLOAD)):
        _read_or_refuse(framed(_flipped(PAYLOAD, position, flip), told))
    raw_bytes, inside_bytes = LENGTHS.unpack_from(PAYLOAD)
    packed = PAYLOAD[LENGTHS.size + raw_bytes :]
    inside = bytes(pa.Codec("zstd").decompress(packed, decompressed_size=inside_bytes))
    for position in range(len(inside)):
        _read_or_refuse(forged(inside=_flipped(inside, position, flip)))


@given(noise=st.binary(max_size=300), keep=st.integers(0, len(PAYLOAD)))
def test_no_noise_in_a_forged_body_breaks_the_reader(noise: bytes, keep: int) -> None:
    """The same for bytes that nobody meant, behind any beginning that somebody did."""
    _read_or_refuse(framed(PAYLOAD[:keep] + noise, peek_header(frame_of(EVENTS)).body_bytes))


def _flipped(content: bytes, position: int, flip: int) -> bytes:
    """Bytes with one of them changed."""
    return content[:position] + bytes([content[position] ^ flip]) + content[position + 1 :]


def _read_or_refuse(frame: bytes) -> None:
    """Read a frame; any error but one of the codec's own goes through to the test."""
    with suppress(CodecError):
        decode_batch(frame).table.validate(full=True)
