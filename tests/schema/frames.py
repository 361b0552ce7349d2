"""A small language for frames: honest ones, and ones that an honest encoder would never write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec
import pyarrow as pa
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import VERSION, BatchHeader, encode_batch
from kvtrail_schema.clock import Clocks
from kvtrail_schema.events import Event
from kvtrail_schema.header import join_frame

CLOCKS: Final = Clocks(monotonic_ns=1_000, wall_ns=1_700_000_000_000_000_000, error_ns=50)


def header_of(first_seq: int = 1, last_seq: int = 1, count: int | None = None, **others: Any) -> BatchHeader:
    """A header of engine `e`, epoch 7, rank 0."""
    span = last_seq - first_seq + 1
    values: dict[str, Any] = {
        "version": VERSION,
        "engine": "e",
        "epoch": 7,
        "rank": 0,
        "produced": last_seq,
        "clocks": CLOCKS,
    } | others
    return BatchHeader(first_seq=first_seq, last_seq=last_seq, count=span if count is None else count, **values)


def header_for(events: Sequence[Event]) -> BatchHeader:
    """The header under which these events, in the order of their seqs, travel."""
    return header_of(events[0].seq, events[-1].seq, len(events)) if events else header_of(0, 0, 0)


def frame_of(events: Sequence[Event]) -> bytes:
    """The frame of some events."""
    return encode_batch(header_for(events), table_of(events))


OLD: Final = 2
"""The last version whose body is an Arrow stream, which anybody can make."""


def forged(header: BatchHeader, body: bytes, *, body_bytes: int | None = None) -> bytes:
    """A frame of that version with a checksum that holds, whatever its body is and whatever its header says of it."""
    told = {"version": OLD} if header.version == VERSION else {}
    size = len(body) if body_bytes is None else body_bytes
    head = msgspec.json.encode(msgspec.structs.replace(header, body_bytes=size, **told))
    return join_frame(head, pa.Codec("zstd").compress(body, asbytes=True), version=OLD)


def stream_of(table: pa.Table, *, compression: Literal["zstd"] | None = None, at_most_rows: int | None = None) -> bytes:
    """A table as an Arrow stream, as anybody could send it."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=at_most_rows)
    return sink.getvalue().to_pybytes()


def plain_table(rows: int, **columns: pa.Array[Any]) -> pa.Table:
    """`rows` step_started events as a body would hold them, with more columns or others in place of these."""
    values: dict[str, pa.Array[Any]] = {
        "seq": pa.array(range(1, rows + 1), pa.uint64()),
        "t_ns": pa.array([0] * rows, pa.int64()),
        "kind": pa.array([10] * rows, pa.uint16()),
        "step": pa.array(range(rows), pa.uint64()),
    }
    return pa.table(values | columns)
