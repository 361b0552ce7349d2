"""The body of a batch of versions 1 and 2: one Arrow stream of a schema and one record batch, read without trusting a length.

Arrow can make much out of little: buffers compressed inside the stream, dictionaries, lists and views whose values
share bytes, buffers that overlap. A reader of bodies from a network allows none of them: it looks at the metadata of a
message first, and reads columns of plain numbers and texts only, whose bytes all lie in the body itself.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kvtrail_schema.compact import expand

_METADATA_BYTES: Final = 1 << 20
_COLUMNS: Final = 512
_END_BYTES: Final = 8
"""The mark that ends an Arrow stream."""

# Where the flatbuffers of Arrow's format keep what is looked at here: Message.header, RecordBatch.compression.
_HEADER_FIELD: Final = 2
_COMPRESSION_FIELD: Final = 3


def read_stream(body: pa.Buffer, rows: int) -> pa.Table:
    """The columns of a body in the order of its rows; integers may be narrower than the pinned ones.

    Raises:
        ValueError, TypeError, KeyError, OSError, struct.error, pa.ArrowException: it is no body of a batch.
    """
    table = expand(_read_table(body, rows))
    place = table.schema.get_field_index("t_ns")
    return table.set_column(place, "t_ns", _summed(table["t_ns"]))


def _read_table(body: pa.Buffer, rows: int) -> pa.Table:
    """The one record batch of a body, validated; its columns are views of the body."""
    source = pa.BufferReader(body)
    reader = pa.ipc.MessageReader.open_stream(source)
    schema = _read_schema(reader.read_next_message())
    message = reader.read_next_message()
    if message.type != "record batch" or _is_compressed(message.metadata.to_pybytes()):
        problem = f"a {message.type} where one record batch without compressed buffers is due"
        raise ValueError(problem)
    table = pa.Table.from_batches([pa.ipc.read_record_batch(message, schema)])
    if table.num_rows != rows:
        problem = f"{table.num_rows} rows where the header says {rows}"
        raise ValueError(problem)
    if table.nbytes > body.size:
        problem = f"columns of {table.nbytes} bytes in a body of {body.size}: its buffers overlap"
        raise ValueError(problem)
    table.validate(full=True)
    _refuse_more(reader, body.size - source.tell())
    return table


def _read_schema(message: pa.ipc.Message) -> pa.Schema:
    """The schema that a body begins with, if a reader of bounded memory can read what it announces."""
    if message.type != "schema" or message.metadata.size > _METADATA_BYTES:
        problem = f"a {message.type} of {message.metadata.size} bytes where a schema is due"
        raise ValueError(problem)
    schema = pa.ipc.read_schema(message)
    if len(schema) > _COLUMNS or len(set(schema.names)) < len(schema):
        problem = f"{len(schema)} columns, of which {_COLUMNS} are read, or two of one name"
        raise ValueError(problem)
    strange = next((field for field in schema if not _is_plain(field.type)), None)
    if strange is not None:
        problem = f"column {strange.name!r} is of type {strange.type}, no plain number or text"
        raise ValueError(problem)
    return schema


def _is_plain(kind: pa.DataType) -> bool:
    """Whether each value of a type has bytes of its own in the body."""
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return bool(is_number or pa.types.is_string(kind) or pa.types.is_binary(kind))


def _is_compressed(metadata: bytes) -> bool:
    """Whether the buffers of a record batch are compressed: then their sizes are promises of the sender.

    Arrow has verified the flatbuffer before it hands it out, so every offset in it lies inside it.
    """
    message = struct.unpack_from("<I", metadata)[0]
    header = _field(metadata, message, _HEADER_FIELD)
    batch = header + struct.unpack_from("<I", metadata, header)[0]
    return _field(metadata, batch, _COMPRESSION_FIELD) != 0


def _field(metadata: bytes, table: int, number: int) -> int:
    """The position of a field of a flatbuffer table; 0 where the field is absent."""
    directory = table - struct.unpack_from("<i", metadata, table)[0]
    entry = 4 + 2 * number
    if entry >= struct.unpack_from("<H", metadata, directory)[0]:
        return 0
    offset = struct.unpack_from("<H", metadata, directory + entry)[0]
    return table + offset if offset else 0


def _refuse_more(reader: pa.ipc.MessageReader, left_bytes: int) -> None:
    """A body ends after its one record batch: rows that are not counted would be lost without a trace."""
    message = next(reader, None)
    if message is not None or left_bytes > _END_BYTES:
        problem = f"{left_bytes} bytes behind the first record batch"
        raise ValueError(problem)


def _summed(differences: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Times from their differences."""
    if not pa.types.is_integer(differences.type) or differences.null_count:
        message = f"times are {differences.type} with {differences.null_count} nulls, not whole numbers"
        raise TypeError(message)
    return pa.chunked_array([pa.array(np.cumsum(differences.combine_chunks().cast(pa.int64()).to_numpy(), dtype=np.int64))])
