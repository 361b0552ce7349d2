"""Records of the ring as Arrow columns: one numpy view a kind, no Python step per event but for texts."""

from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from kvtrail_schema.arrow_schema import EVENT_SCHEMA
from kvtrail_schema.columns import COLUMNS, Column, Width
from kvtrail_schema.kinds import FIELDS_OF, Kind

from kvtrail_agent import ring_layout as layout

_TEXT_TYPE: Final = np.dtype([("position", "<u8"), ("bytes", "<u4")])
_NUMPY_TYPES: Final[dict[Width, np.dtype[Any]]] = {
    Width.U8: np.dtype("u1"),
    Width.U16: np.dtype("<u2"),
    Width.U32: np.dtype("<u4"),
    Width.U64: np.dtype("<u8"),
    Width.I16: np.dtype("<i2"),
    Width.I64: np.dtype("<i8"),
    Width.F64: np.dtype("<f8"),
    Width.BOOL: np.dtype("u1"),
    Width.TRACE: np.dtype("S16"),
    Width.TEXT: _TEXT_TYPE,
}


@cache
def _record_type(kind: Kind) -> np.dtype[np.void]:
    """The numpy form of a kind's record."""
    fields = [("t_ns", "<i8"), *((name, _NUMPY_TYPES[COLUMNS[name].width]) for name in layout.record_fields(kind))]
    used = np.dtype(fields).itemsize
    return np.dtype([*fields, ("rest", f"V{layout.RECORD_BYTES - used}")])


def columns_of(records: npt.NDArray[np.uint8], texts: memoryview) -> "tuple[dict[str, pa.Array[Any]], int]":
    """The columns of copied records, and the end of the last text among them."""
    found: dict[str, npt.NDArray[Any]] = {}
    kinds = records[:, layout.KIND_OFFSET]
    strings: dict[str, list[str | None]] = {}
    text_end = 0
    for number in np.unique(kinds):
        kind, where = Kind(int(number)), np.flatnonzero(kinds == number)
        typed = records[where].view(_record_type(kind)).reshape(-1)
        for name in ("t_ns", *FIELDS_OF[kind]):
            column = COLUMNS[name]
            if column.width is Width.TEXT:
                values, text_end = _texts(typed[name], texts, text_end)
                _scatter(strings, name, len(records), where, values)
            elif column.width is Width.TRACE:
                _scatter(
                    strings, name, len(records), where, [raw.ljust(16, b"\0").hex() if raw else None for raw in typed[name]]
                )
            else:
                found.setdefault(name, _empty(column, len(records)))[where] = typed[name]
    columns: dict[str, pa.Array[Any]] = {name: _array(COLUMNS[name], values) for name, values in found.items()}
    columns |= {name: pa.array(values, type=pa.utf8()) for name, values in strings.items()}
    return columns | {"kind": pa.array(kinds.astype(np.uint16))}, text_end


def _empty(column: Column, rows: int) -> npt.NDArray[Any]:
    """A column in which every row is absent."""
    return np.full(rows, column.width.absent, dtype=_NUMPY_TYPES[column.width])


def _array(column: Column, values: npt.NDArray[Any]) -> "pa.Array[Any]":
    """A column with its absent rows as nulls."""
    if column.name == "t_ns":  # every event has its time; a caller's impossible one stays a number, not a hole
        times: pa.Array[Any] = pa.array(values)
        return times
    absent = np.isnan(values) if column.width is Width.F64 else values == np.array(column.width.absent, dtype=values.dtype)
    plain = values.astype(bool) if column.width is Width.BOOL else values
    array: pa.Array[Any] = pa.array(plain, type=EVENT_SCHEMA.field(column.name).type, mask=absent)
    return array


def _texts(where: npt.NDArray[np.void], texts: memoryview, text_end: int) -> tuple[list[str | None], int]:
    """The texts at positions in the text area, and the end of the last one."""
    found: list[str | None] = []
    for position, size in where.tolist():
        begin = position % len(texts)
        found.append(bytes(texts[begin : begin + size]).decode(errors="replace") if size else None)
        text_end = max(text_end, position + size)
    return found, text_end


def _scatter(
    columns: dict[str, list[str | None]], name: str, rows: int, where: npt.NDArray[np.intp], values: list[str | None]
) -> None:
    """Put the texts of one kind's rows into their column."""
    column = columns.setdefault(name, [None] * rows)
    for row, value in zip(where.tolist(), values, strict=True):
        column[row] = value
