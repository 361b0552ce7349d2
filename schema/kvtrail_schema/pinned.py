"""Columns that came over the wire as the pinned ones of an event: every one of them, in its order, in its type."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pyarrow as pa

from kvtrail_schema.arrow_schema import EVENT_SCHEMA, EXTRA

_CELLS_AT_ONCE: Final = 1 << 16
_CELL_BYTES: Final = 32
"""What a number and its quotation marks need in JSON at most."""
_ESCAPED: Final = 6
"""Bytes of JSON that one byte of text can become."""
_WIDEST_BYTES: Final = 8
_ON_EVERY_ROW: Final = frozenset({"seq", "t_ns", "kind"})
_SCHEMA: Final = EVENT_SCHEMA.append(pa.field(EXTRA, pa.utf8()))


def pinned(table: pa.Table, extra_bytes: int) -> pa.Table:
    """All pinned columns, and `extra` with what this version does not know.

    Allocates one run of zeros for all columns that did not travel, and at most `extra_bytes` of texts.

    Raises:
        ValueError, TypeError, KeyError, pa.ArrowException: a column that an event must have is not there, or of another type.
    """
    zeros = pa.py_buffer(bytes(_WIDEST_BYTES * (table.num_rows + 1)))
    there = frozenset(table.column_names)
    columns = [_column(table, field, zeros, is_there=field.name in there) for field in EVENT_SCHEMA]
    if columns[EVENT_SCHEMA.names.index("kind")].null_count:
        message = "rows without a kind"
        raise ValueError(message)
    return pa.Table.from_arrays([*columns, _extra(table, extra_bytes)], schema=_SCHEMA)


def _column(table: pa.Table, field: pa.Field[Any], zeros: pa.Buffer, *, is_there: bool) -> pa.ChunkedArray[Any] | pa.Array[Any]:
    """One pinned column: as it is, from another integer that it fits, or all null where nothing of it travelled."""
    if not is_there and field.name not in _ON_EVERY_ROW:
        return _nulls(table.num_rows, field.type, zeros)
    column = table[field.name]
    both_integers = pa.types.is_integer(column.type) and pa.types.is_integer(field.type)
    if column.type != field.type and not both_integers:
        message = f"column {field.name!r} is of type {column.type}, not {field.type}"
        raise TypeError(message)
    return column if column.type == field.type else column.cast(field.type)


def _nulls(rows: int, kind: pa.DataType, zeros: pa.Buffer) -> pa.Array[Any]:
    """A column without values. All of them share one run of zeros: most columns of most batches are empty."""
    buffers: list[pa.Buffer | None] = [zeros, zeros, zeros] if pa.types.is_string(kind) else [zeros, zeros]
    empty: pa.Array[Any] = pa.Array.from_buffers(kind, rows, buffers, null_count=rows)
    return empty


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
