"""The body of a batch: one Arrow stream of a schema and one record batch, read without trusting a length in it.

Arrow can make much out of little: buffers compressed inside the stream, dictionaries, lists and views whose values
share bytes, buffers that overlap. A reader of bodies from a network allows none of them: it looks at the metadata of a
message first, and reads columns of plain numbers and texts only, whose bytes all lie in the body itself.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from kvtrail_schema.arrow_schema import EVENT_SCHEMA, EXTRA
from kvtrail_schema.compact import compact, expand

_METADATA_BYTES: Final = 1 << 20
_COLUMNS: Final = 512
_END_BYTES: Final = 8
"""The mark that ends an Arrow stream."""
_CELLS_AT_ONCE: Final = 1 << 16
_CELL_BYTES: Final = 32
"""What a number and its quotation marks need in JSON at most."""
_ESCAPED: Final = 6
"""Bytes of JSON that one byte of text can become."""
_WIDEST_BYTES: Final = 8
_ON_EVERY_ROW: Final = frozenset({"seq", "t_ns", "kind"})

# Where the flatbuffers of Arrow's format keep what is looked at here: Message.header, RecordBatch.compression.
_HEADER_FIELD: Final = 2
_COMPRESSION_FIELD: Final = 3


def write_body(table: pa.Table) -> bytes:
    """The columns that hold anything, made small, as one Arrow stream with one record batch."""
    used = [name for name in table.column_names if table[name].null_count < table.num_rows]
    plain = compact(table.select(used))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, plain.schema) as writer:
        writer.write_table(plain)
    return sink.getvalue().to_pybytes()


def read_body(body: pa.Buffer, rows: int, extra_bytes: int) -> pa.Table:
    """The rows of a body with every pinned column, and `extra` with what this version does not know.

    Allocates the columns that travelled, one run of zeros for all that did not, and at most `extra_bytes` of texts.

    Raises:
        ValueError, TypeError, KeyError, OSError, struct.error, pa.ArrowException: it is no body of a batch.
    """
    table = expand(_read_table(body, rows))
    zeros = pa.py_buffer(bytes(_WIDEST_BYTES * (rows + 1)))
    columns = [_column(table, field, zeros) for field in EVENT_SCHEMA]
    if columns[EVENT_SCHEMA.names.index("kind")].null_count:
        message = "rows without a kind"
        raise ValueError(message)
    schema = EVENT_SCHEMA.append(pa.field(EXTRA, pa.utf8()))
    return pa.Table.from_arrays([*columns, _extra(table, extra_bytes)], schema=schema)


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


def _column(table: pa.Table, field: pa.Field[Any], zeros: pa.Buffer) -> pa.ChunkedArray[Any]:
    """One pinned column: as it is, from a narrower integer, or all null where nothing of it travelled."""
    if field.name not in table.column_names and field.name not in _ON_EVERY_ROW:
        return pa.chunked_array([_nulls(table.num_rows, field.type, zeros)])
    column = table[field.name]
    if field.name == "t_ns":
        return _summed(column)
    both_integers = pa.types.is_integer(column.type) and pa.types.is_integer(field.type)
    if column.type != field.type and not both_integers:
        message = f"column {field.name!r} is of type {column.type}, not {field.type}"
        raise TypeError(message)
    return column.cast(field.type)


def _nulls(rows: int, kind: pa.DataType, zeros: pa.Buffer) -> pa.Array[Any]:
    """A column without values. All of them share one run of zeros: most columns of most batches are empty."""
    buffers: list[pa.Buffer | None] = [zeros, zeros, zeros] if pa.types.is_string(kind) else [zeros, zeros]
    empty: pa.Array[Any] = pa.Array.from_buffers(kind, rows, buffers, null_count=rows)
    return empty


def _summed(differences: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Times from their differences."""
    if not pa.types.is_integer(differences.type) or differences.null_count:
        message = f"times are {differences.type} with {differences.null_count} nulls, not whole numbers"
        raise TypeError(message)
    return pa.chunked_array([pa.array(np.cumsum(differences.combine_chunks().cast(pa.int64()).to_numpy(), dtype=np.int64))])


def _extra(table: pa.Table, extra_bytes: int) -> pa.ChunkedArray[pa.StringScalar]:
    """Unknown columns as one JSON text a row; null where a row has none."""
    strange = [name for name in table.column_names if name not in EVENT_SCHEMA.names]
    if not strange:
        return pa.chunked_array([pa.nulls(table.num_rows, pa.utf8())])
    unknown = table.select(strange)
    needed = _most_json_bytes(unknown)
    if needed > extra_bytes:
        message = f"columns that this version does not know need up to {needed} bytes, {extra_bytes} are allowed"
        raise ValueError(message)
    at_once = max(1, _CELLS_AT_ONCE // len(strange))
    parts = [_texts(unknown.slice(start, at_once)) for start in range(0, table.num_rows, at_once)]
    return pa.chunked_array(parts)


def _most_json_bytes(unknown: pa.Table) -> int:
    """The most bytes that the values of some columns can take as JSON."""
    cells = [(len(name.encode()), unknown.num_rows - unknown[name].null_count) for name in unknown.column_names]
    return sum((_ESCAPED * name_bytes + _CELL_BYTES) * count for name_bytes, count in cells) + _ESCAPED * unknown.nbytes


def _texts(rows: pa.Table) -> pa.StringArray:
    """One JSON text a row, of the values that are there."""
    kept = [{name: value for name, value in row.items() if value is not None} for row in rows.to_pylist()]
    texts = [msgspec.json.encode(values, order="sorted").decode() if values else None for values in kept]
    return pa.array(texts, type=pa.utf8())
