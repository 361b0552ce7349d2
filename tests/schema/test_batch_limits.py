"""A frame from a stranger: bounded before anything is allocated, and refused by an error that says in which way."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_schema.batch import MAGIC, VERSION, DropRange, Limits, decode_batch, peek_header
from kvtrail_schema.clock import Clocks
from kvtrail_schema.enums import Stage
from kvtrail_schema.errors import BodyInvalid, CodecError, FrameTooLarge, NotABatch, VersionUnknown
from kvtrail_schema.events import StepStarted
from kvtrail_schema.header import encode_head, join_frame
from kvtrail_schema.identity import StepId
from kvtrail_schema.reasons import DropReason

from tests.schema.frames import OLD, forged, frame_of, header_of, plain_table, stream_of

EVENTS = [StepStarted(seq=n, t_ns=n, step=StepId(n)) for n in range(1, 101)]
FRAME = frame_of(EVENTS)
ROWS = 1_000


def test_frame_over_its_limit_is_refused() -> None:
    """A frame is measured before it is looked at; one of exactly the limit is read."""
    exact = Limits(frame_bytes=len(FRAME))

    assert len(EVENTS) == decode_batch(FRAME, limits=exact).table.num_rows
    with pytest.raises(FrameTooLarge, match="send smaller batches"):
        decode_batch(FRAME, limits=Limits(frame_bytes=len(FRAME) - 1))


def test_header_over_its_limit_is_refused() -> None:
    """The length of the header is a claim of the sender: it is held to the limit and to the frame."""
    with pytest.raises(FrameTooLarge, match="header says"):
        peek_header(FRAME, limits=Limits(header_bytes=10))
    with pytest.raises(FrameTooLarge, match="cut or forged"):
        peek_header(struct.pack("<4sHII", MAGIC, VERSION, 2**32 - 1, 0) + b"{}")


def test_rows_over_their_limit_are_refused() -> None:
    """A million rows compress to nothing; their number is held to the limit before the body is touched."""
    assert len(EVENTS) == decode_batch(FRAME, limits=Limits(rows=len(EVENTS))).table.num_rows
    with pytest.raises(FrameTooLarge, match="over the limit of 99"):
        decode_batch(FRAME, limits=Limits(rows=len(EVENTS) - 1))


def test_body_over_its_limit_is_refused() -> None:
    """The size after decompression is held to the limit before a byte of it is allocated."""
    size = peek_header(FRAME).body_bytes

    assert len(EVENTS) == decode_batch(FRAME, limits=Limits(body_bytes=size)).table.num_rows
    with pytest.raises(FrameTooLarge, match=f"in {size} bytes are over the limit"):
        decode_batch(FRAME, limits=Limits(body_bytes=size - 1))


@pytest.mark.parametrize("delta", [-1, 1, 1_000_000])
def test_body_has_exactly_the_size_that_its_header_says(delta: int) -> None:
    """A bomb that says it is small stops at the size it said; one that says more than it is, is a forgery too."""
    body = stream_of(plain_table(ROWS))

    with pytest.raises(BodyInvalid):
        decode_batch(forged(header_of(1, ROWS), body, body_bytes=len(body) + delta))


def test_engine_name_is_bounded_in_bytes() -> None:
    """A name is counted as it is stored, in UTF-8."""
    frame = join_frame(encode_head(header_of(0, 0, 0, engine="ü" * 20)), b"")

    assert len(peek_header(frame, limits=Limits(engine_bytes=40)).engine) == 20
    with pytest.raises(FrameTooLarge, match="engine name of 40 bytes"):
        peek_header(frame, limits=Limits(engine_bytes=39))


@pytest.mark.parametrize("frame", [b"", b"KVT", b"KVTR", b"GET / HTTP/1.1\r\n\r\n", FRAME[:13]])
def test_other_bytes_are_no_batch(frame: bytes) -> None:
    """Another protocol on our port is told so."""
    with pytest.raises(NotABatch, match="does not begin like a kvtrail batch"):
        decode_batch(frame)


def test_newer_version_is_not_guessed() -> None:
    """A newer frame is refused whole, with the remedy, so that it can be kept raw."""
    frame = bytearray(FRAME)
    frame[4:6] = (VERSION + 1).to_bytes(2, "little")

    with pytest.raises(VersionUnknown, match="upgrade the collector"):
        decode_batch(bytes(frame))


def test_inner_compression_is_refused() -> None:
    """Buffers that are compressed inside the stream would unfold past every limit: none is unfolded, small or large."""
    table = plain_table(100_000)
    body = stream_of(table, compression="zstd")

    assert len(body) < table.nbytes / 4
    with pytest.raises(BodyInvalid, match="without compressed buffers"):
        decode_batch(forged(header_of(1, 100_000), body))


def test_overlapping_buffers_are_refused() -> None:
    """A hundred columns that all lie on the same bytes are a hundred times their size once they are copied."""
    width = 8 * ROWS
    names = [f"c{n}" for n in range(100)]
    table = (
        plain_table(ROWS)
        .append_column("c", pa.chunked_array([pa.array([0] * ROWS, pa.uint64())]))
        .select(["seq", "t_ns", "kind", "c"])
    )
    many = pa.table({**{n: table[n] for n in ("seq", "t_ns", "kind")}, **dict.fromkeys(names, table["c"])})
    body = bytearray(stream_of(many))
    first = 2 * width + 2 * ROWS
    for n in range(1, len(names)):
        _patch(body, struct.pack("<qq", first + n * width, width), struct.pack("<qq", first, width))
    _patch(body, struct.pack("<q", first + len(names) * width), struct.pack("<q", first + width))
    cut = bytes(body[: len(body) - 8 - (len(names) - 1) * width]) + bytes(body[-8:])

    with pytest.raises(BodyInvalid, match="its buffers overlap"):
        decode_batch(forged(header_of(1, ROWS), cut))


def _patch(raw: bytearray, old: bytes, new: bytes) -> None:
    """Replace the one occurrence of some bytes."""
    at = raw.index(old)
    raw[at : at + len(old)] = new


BIG = "x" * 10_000
HOSTILE: dict[str, Callable[[], pa.Array[Any]]] = {
    "dictionary": lambda: pa.array([BIG] * ROWS).dictionary_encode(),
    "run ends": lambda: pa.RunEndEncodedArray.from_arrays(pa.array([ROWS], pa.int32()), pa.array([BIG])),
    "list": lambda: pa.array([[1, 2]] * ROWS),
    "list view": lambda: pa.array([[1, 2]] * ROWS, pa.list_view(pa.int64())),
    "text view": lambda: pa.array([BIG] * ROWS, pa.string_view()),
    "struct": lambda: pa.array([{"a": 1}] * ROWS),
    "null": lambda: pa.nulls(ROWS),
    "decimal": lambda: pa.array([1] * ROWS, pa.decimal128(10)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_only_plain_numbers_and_texts_are_read(name: str) -> None:
    """Types in which many values share few bytes are refused by their schema, before any value is read."""
    with pytest.raises(BodyInvalid, match="no plain number or text"):
        decode_batch(forged(header_of(1, ROWS), stream_of(plain_table(ROWS, strange=HOSTILE[name]()))))


def test_unknown_columns_are_bounded() -> None:
    """Names of columns repeat on every row of `extra`: what they would need is reckoned before it is written."""
    table = plain_table(ROWS, **{"n" * 5_000: pa.array([1] * ROWS, pa.int8())})
    frame = forged(header_of(1, ROWS), stream_of(table))

    assert decode_batch(frame).table.num_rows == ROWS
    with pytest.raises(BodyInvalid, match="columns that this version does not know need up to"):
        decode_batch(frame, limits=Limits(body_bytes=1 << 20))


@pytest.mark.parametrize("columns", [509, 100_000])
def test_number_of_columns_is_bounded(columns: int) -> None:
    """A schema of a hundred thousand columns is refused without being taken apart."""
    table = pa.table(
        {**{name: plain_table(1)[name] for name in plain_table(1).column_names}, **{f"c{n}": [1] for n in range(columns)}}
    )

    with pytest.raises(BodyInvalid, match=r"columns, of which 512|bytes where a schema is due"):
        decode_batch(forged(header_of(1, 1), stream_of(table)))


BODIES: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "noise": lambda: bytes(range(256)),
    "a second batch": lambda: stream_of(plain_table(4), at_most_rows=2),
    "a second stream": lambda: stream_of(plain_table(4)) + stream_of(plain_table(4)),
    "rows missing": lambda: stream_of(plain_table(3)),
    "rows too many": lambda: stream_of(plain_table(5)),
    "seqs that fall": lambda: stream_of(plain_table(4, seq=pa.array([1, 3, 2, 4], pa.uint64()))),
    "a seq twice": lambda: stream_of(plain_table(4, seq=pa.array([1, 2, 2, 4], pa.uint64()))),
    "a seq before the first": lambda: stream_of(plain_table(4, seq=pa.array([0, 2, 3, 4], pa.uint64()))),
    "a seq past the last": lambda: stream_of(plain_table(4, seq=pa.array([1, 2, 3, 5], pa.uint64()))),
    "a seq missing": lambda: stream_of(plain_table(4, seq=pa.array([1, None, 3, 4], pa.uint64()))),
    "no seqs": lambda: stream_of(plain_table(4).drop_columns(["seq"])),
    "no times": lambda: stream_of(plain_table(4).drop_columns(["t_ns"])),
    "no kinds": lambda: stream_of(plain_table(4).drop_columns(["kind"])),
    "a time missing": lambda: stream_of(plain_table(4, t_ns=pa.array([1, None, 1, 1], pa.int64()))),
    "a kind missing": lambda: stream_of(plain_table(4, kind=pa.array([1, None, 1, 1], pa.uint16()))),
    "times as floats": lambda: stream_of(plain_table(4, t_ns=pa.array([1.5] * 4))),
    "a number as text": lambda: stream_of(plain_table(4, step=pa.array(["1"] * 4))),
    "a column twice": lambda: stream_of(plain_table(4).append_column("step", pa.chunked_array([pa.array(range(4))]))),
    "text that is no UTF-8": lambda: stream_of(plain_table(4, text=pa.array([b"\xff"] * 4).cast(pa.string(), safe=False))),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_body_that_is_no_batch_is_refused(name: str) -> None:
    """What the books cannot take in whole is not taken in at all."""
    with pytest.raises(BodyInvalid):
        decode_batch(forged(header_of(1, 4), BODIES[name]()))


DROP = DropRange(Stage.RING, DropReason.FULL, 5, 4, 1)
HEADERS: dict[str, dict[str, Any]] = {
    "no engine": {"engine": ""},
    "rank too large": {"rank": 2**16 - 1},
    "negative rank": {"rank": -1},
    "epoch too large": {"epoch": 2**64},
    "produced too large": {"produced": 2**64},
    "clock past its width": {"clocks": Clocks(2**63, 0, 0)},
    "seq zero": {"first_seq": 0},
    "last before first": {"first_seq": 3, "last_seq": 2, "count": 1},
    "more rows than seqs": {"count": 5},
    "drop that ends before it begins": {"drops": (DROP,)},
    "another version inside": {"version": OLD - 1},
}


@pytest.mark.parametrize("name", HEADERS)
def test_header_that_contradicts_itself_is_refused(name: str) -> None:
    """Numbers that cannot be are refused at the door, not found later in the books."""
    header = msgspec.structs.replace(header_of(1, 4), **HEADERS[name])

    with pytest.raises(BodyInvalid, match="contradicts itself"):
        decode_batch(forged(header, stream_of(plain_table(4))))


@pytest.mark.parametrize(
    "head", [b"", b"[]", b"{}", b"\xff", b'{"version":', b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"]
)
@pytest.mark.parametrize("version", [OLD, VERSION])
def test_header_that_is_none_is_refused(version: int, head: bytes) -> None:
    """Whatever stands where the header should, it is an answer to the sender and no failure of ours."""
    with pytest.raises(BodyInvalid, match="header of the frame is not one"):
        peek_header(join_frame(head, b"", version=version))


def test_rows_behind_a_heartbeat_are_refused() -> None:
    """A header that says "no rows" in front of rows would lose them without a trace."""
    body = stream_of(plain_table(4))

    with pytest.raises(BodyInvalid, match="says no rows"):
        decode_batch(forged(header_of(1, 4, 0), body))


BODY = stream_of(plain_table(4, text=pa.array(["a", None, "bc", "d"]), zone=pa.array(["z"] * 4)))


@pytest.mark.parametrize("flip", [0xFF, 0x01, 0x80])
def test_no_byte_of_a_forged_body_breaks_the_reader(flip: int) -> None:
    """With a checksum that holds, every byte of the stream is hostile: it is read, or refused, and nothing else."""
    for position in range(len(BODY)):
        body = bytearray(BODY)
        body[position] ^= flip
        _read_or_refuse(forged(header_of(1, 4), bytes(body)))


@given(body=st.binary(max_size=600), keep=st.integers(0, len(BODY)))
def test_no_noise_in_a_forged_body_breaks_the_reader(body: bytes, keep: int) -> None:
    """The same for bytes that nobody meant, behind any beginning that somebody did."""
    _read_or_refuse(forged(header_of(1, 4), BODY[:keep] + body))


def _read_or_refuse(frame: bytes) -> None:
    """Read a frame; any error but one of the codec's own goes through to the test."""
    with suppress(CodecError):
        decode_batch(frame).table.validate(full=True)
