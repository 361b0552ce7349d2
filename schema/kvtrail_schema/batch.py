"""The form of events on the wire: one batch is one frame, self-describing, checksummed, bounded.

The frame and its header stand in `header.py`. The body is made of columns (`wire_columns.py`): what compresses lies in one
zstd frame, whose size after decompression is held to its bound before anything is decompressed, what does not lies beside it.
Columns in which every value is null do not travel. Frames of versions 1 and 2, whose body is an Arrow stream, are read for
ever. A frame is complete in itself: it can be stored, replayed and merged in any order.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from kvtrail_schema.arrow_body import read_stream
from kvtrail_schema.arrow_schema import EVENT_SCHEMA, EXTRA
from kvtrail_schema.clock import Clocks
from kvtrail_schema.errors import BodyInvalid
from kvtrail_schema.header import (
    CONTENT_TYPE,
    DEFAULT_LIMITS,
    MAGIC,
    VERSION,
    BatchHeader,
    DropRange,
    Limits,
    StreamState,
    encode_head,
    join_frame,
    name_of,
    peek_header,
    split_frame,
    unknown_in,
)
from kvtrail_schema.pinned import pinned
from kvtrail_schema.wire_read import read_body
from kvtrail_schema.wire_write import Body, write_body

__all__ = [
    "CONTENT_TYPE",
    "DEFAULT_LIMITS",
    "MAGIC",
    "VERSION",
    "BatchHeader",
    "Clocks",
    "DecodedBatch",
    "DropRange",
    "Limits",
    "StreamState",
    "decode_batch",
    "encode_batch",
    "name_of",
    "peek_header",
    "unknown_in",
]

_ARROW: Final = frozenset({1, 2})
"""The versions whose body is an Arrow stream."""
_UNREADABLE: Final = (
    *(pa.ArrowException, msgspec.MsgspecError, ValueError, TypeError, OverflowError),
    *(KeyError, OSError, StopIteration, struct.error),
)


class DecodedBatch(NamedTuple):
    """A frame, read: its header, and its rows with all pinned columns and `extra`."""

    header: BatchHeader
    table: pa.Table


def encode_batch(header: BatchHeader, table: pa.Table) -> bytes:
    """A batch as one frame, its seqs ascending from the header's first. Runs in the shipper; a millisecond or two a frame,
    and 0.2 µs an event.
    """
    body = write_body(table) if table.num_rows else Body(b"", 0)
    told = msgspec.structs.replace(header, version=VERSION, count=table.num_rows, body_bytes=body.needs_bytes)
    return join_frame(encode_head(told), body.payload)


def decode_batch(frame: bytes | memoryview, *, limits: Limits = DEFAULT_LIMITS) -> DecodedBatch:
    """Read a frame. Runs in the collector; never allocates more than `limits` allow; never trusts a length.

    The table has all pinned columns in their order, and `extra` with what this version does not know. Seqs ascend.

    Raises:
        CodecError: the frame cannot be read; the subclass says in which way. Nothing of it may be stored as events.
    """
    header, packed = split_frame(memoryview(frame), limits)
    if header.count == 0 and packed.nbytes:
        message = f"header of the frame says no rows, and {packed.nbytes} bytes follow it"
        raise BodyInvalid(message)
    if header.count == 0:
        return DecodedBatch(header, EVENT_SCHEMA.append(pa.field(EXTRA, pa.utf8())).empty_table())
    try:
        columns = _read_columns(packed, header)
        table = pinned(columns, limits.body_bytes)
        _check_seqs(table, header)
    except _UNREADABLE as error:
        message = f"body of the frame is not a batch of events: {error}"
        raise BodyInvalid(message) from error
    return DecodedBatch(header, table)


def _read_columns(packed: memoryview, header: BatchHeader) -> pa.Table:
    """The columns of a body of any version, in memory of the size that the header promised and the limits allowed."""
    if header.version not in _ARROW:
        return read_body(packed, header.count, header.first_seq, header.body_bytes)
    return read_stream(pa.Codec("zstd").decompress(pa.py_buffer(packed), decompressed_size=header.body_bytes), header.count)


def _check_seqs(table: pa.Table, header: BatchHeader) -> None:
    """Seqs must ascend from the header's first to its last, or the books could not be balanced."""
    numbers = table["seq"].combine_chunks().to_numpy(zero_copy_only=False)
    ascending = bool(np.all(numbers[1:] > numbers[:-1]))
    if table["seq"].null_count or not ascending or numbers[0] != header.first_seq or numbers[-1] != header.last_seq:
        message = f"seqs do not ascend from {header.first_seq} to {header.last_seq}"
        raise ValueError(message)
