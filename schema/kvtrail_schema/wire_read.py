"""A body of version 3 (`wire_columns.py`) as rows, without trusting a length or a number in it. Runs in the collector.

Allocates what its header promised: the inside of the body once it is decompressed, and a number for each row and column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kvtrail_schema.planes import PlaneReader
from kvtrail_schema.row_order import Flags, RowOrder, Unsigned, by_kind, by_request
from kvtrail_schema.wire_columns import HOLES, LENGTH, LENGTHS, Coding, Directory, name_of_column, needs_bytes
from kvtrail_schema.wire_places import copies_of, join, sorted_by_copy

_ON_EVERY_ROW: Final = frozenset({"seq", "t_ns", "kind"})
_COLUMNS: Final = 512
_DIRECTORY_BYTES: Final = 1 << 20
"""As `arrow_body.py` bounds a schema: a number of one byte becomes an object of many once it is decoded."""

_LARGEST_KIND: Final = 2**16 - 1


@dataclass(frozen=True, slots=True)
class _Column:
    """A column that is to be read, and where it has values, in the order of the rows."""

    name: str
    coding: Coding
    is_there: Flags

    @property
    def count(self) -> int:
        """How many values it has."""
        return int(np.count_nonzero(self.is_there))

    def on_rows(self, values: Unsigned) -> Unsigned:
        """The values row by row, 0 where there is none."""
        found = np.zeros(len(self.is_there), dtype=np.uint64)
        found[self.is_there] = values
        return found


@dataclass(slots=True)
class _Values:
    """Reads the values of columns one after another, and keeps what later ones are told by."""

    planes: PlaneReader
    bases: list[int]
    known: dict[str, Unsigned] = field(default_factory=dict)
    more: list[Unsigned] = field(default_factory=list)

    def numbers(self, count: int) -> Unsigned:
        """So many numbers above their base."""
        if not self.bases:
            raise ValueError("numbers without a base")
        base = np.uint64(self.bases.pop(0))
        found = self.planes.take(count)
        if count and int(found.max()) > 2**64 - 1 - int(base):
            raise ValueError("a number beyond its width")
        return found + base

    def ids(self, column: _Column, more: list[_Column]) -> tuple[Unsigned, Unsigned]:
        """The ids of a column, and the number of each from 1; those of the columns that go on with it wait in `more`."""
        counts = [one.count for one in (column, *more)]
        numbers = np.cumsum(self.planes.take_signed(sum(counts)) + 1) - 1
        if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(numbers):
            raise ValueError(f"an id that points to where none is, in {column.name}")
        different = int(numbers.max()) + 1 if len(numbers) else 0
        ids = self.planes.take(different)
        if column.coding is Coding.IDS_STEPS:
            ids = np.cumsum((ids >> np.uint64(1)) ^ (np.uint64(0) - (ids & np.uint64(1))), dtype=np.uint64)
        own, *self.more = np.split(ids[numbers], np.cumsum(counts)[:-1])
        return own, (numbers[: counts[0]] + 1).astype(np.uint64)

    def next_ids(self, column: _Column) -> Unsigned:
        """The ids of a column that goes on with the one before."""
        if not self.more:
            raise ValueError(f"{column.name} goes on with nothing")
        return self.more.pop(0)

    def slots(self, column: _Column) -> Unsigned:
        """Slots, told as steps from the last one of the same copy."""
        copies = copies_of(self.known, len(column.is_there))[column.is_there]
        order, firsts = sorted_by_copy(copies)
        first_slots = self.numbers(int(np.count_nonzero(firsts))).view(np.int64)
        steps = self.planes.take_signed(int(np.count_nonzero(~firsts)))
        return join(first_slots, steps, order, firsts).view(np.uint64)

    def texts(self, count: int) -> list[str]:
        """So many texts."""
        sizes = self.numbers(count)
        if sum(sizes.tolist()) > self.planes.bytes_left:
            raise ValueError("texts longer than the body")
        return [str(self.planes.take_bytes(size), "utf-8") for size in sizes.tolist()]


def read_body(payload: memoryview, rows: int, first_seq: int, promised_bytes: int) -> pa.Table:
    """The columns of a body, in the order of its rows, with the widest types that its codings have.

    Raises:
        ValueError, TypeError, struct.error, pa.ArrowException, msgspec.MsgspecError: it is no body of a batch.
    """
    raw_bytes, inside_bytes = LENGTHS.unpack_from(payload)
    if inside_bytes > promised_bytes or raw_bytes > payload.nbytes - LENGTHS.size:
        raise ValueError(
            f"a body of {raw_bytes} and {inside_bytes} bytes in {payload.nbytes}, of which {promised_bytes} are told"
        )
    rest = payload[LENGTHS.size + raw_bytes :]
    inside = memoryview(pa.Codec("zstd").decompress(pa.py_buffer(rest), decompressed_size=inside_bytes))
    (directory_bytes,) = LENGTH.unpack_from(inside)
    if directory_bytes > _DIRECTORY_BYTES:
        raise ValueError(f"a directory of {directory_bytes} bytes, of which {_DIRECTORY_BYTES} are allowed")
    streams = inside[LENGTH.size + directory_bytes :]
    directory = msgspec.msgpack.decode(inside[LENGTH.size : LENGTH.size + directory_bytes], type=Directory)
    if needs_bytes(inside_bytes, rows, len(directory.columns)) != promised_bytes or len(directory.columns) > _COLUMNS:
        raise ValueError(f"{len(directory.columns)} columns of {rows} rows, where {promised_bytes} bytes are told")
    if directory.first_seq != first_seq:
        raise ValueError(f"rows from seq {directory.first_seq}, where the header says {first_seq}")
    planes = PlaneReader(directory.shapes, payload[LENGTHS.size : LENGTHS.size + raw_bytes], streams)
    columns = _read_columns(directory, planes, rows, first_seq)
    planes.see_end()
    return pa.table(columns)


def _read_columns(directory: Directory, planes: PlaneReader, rows: int, first_seq: int) -> dict[str, pa.Array[Any]]:
    """All columns, by name."""
    kinds = planes.take(rows)
    if int(kinds.max()) > _LARGEST_KIND:
        raise ValueError(f"a kind of number {int(kinds.max())}")
    steps = np.concatenate([np.array([first_seq], dtype=np.uint64), planes.take(rows - 1) + np.uint64(1)])
    times = np.concatenate([np.array([directory.first_t_ns], dtype=np.int64), planes.take_signed(rows - 1)])
    order = by_kind(kinds.astype(np.uint16))
    columns = _columns(directory, planes, order)
    found: dict[str, pa.Array[Any]] = {
        "seq": pa.array(np.cumsum(steps, dtype=np.uint64)),
        "t_ns": pa.array(np.cumsum(times, dtype=np.int64)),
        "kind": pa.array(kinds.astype(np.uint16)),
    }
    values = _Values(planes, directory.bases)
    for place, column in enumerate(columns):
        read = _read_values(values, column, [one for one in columns[place + 1 : place + 2] if one.coding is Coding.MORE_IDS])
        found[column.name] = _on_rows(read, column, order)
        if column.name == "req" and place == 0 and "req" in values.known:
            order = by_request(order, values.known["req"])
    return found


def _columns(directory: Directory, planes: PlaneReader, order: RowOrder) -> list[_Column]:
    """Which columns there are, and where they have values."""
    names = [name_of_column(number) for number in directory.columns]
    if len(set(names)) < len(names) or len(directory.codings) != len(names) or _ON_EVERY_ROW & set(names):
        raise ValueError(f"columns {names} with {len(directory.codings)} codings")
    bits = len(names) * order.kinds
    if len(directory.kinds_of) != (bits + 7) // 8:
        raise ValueError(f"{len(directory.kinds_of)} bytes for {len(names)} columns of {order.kinds} kinds")
    kinds_of = (
        np.unpackbits(np.frombuffer(directory.kinds_of, dtype=np.uint8), count=bits).astype(bool).reshape(-1, order.kinds)
    )
    return [
        _Column(name, Coding(coding & ~HOLES), _flags(planes, order.rows_of(some), has_holes=bool(coding & HOLES)))
        for name, coding, some in zip(names, directory.codings, kinds_of, strict=True)
    ]


def _flags(planes: PlaneReader, rows: Flags, *, has_holes: bool) -> Flags:
    """Where a column has values: on all rows of its kinds, or on those of which a bit says so."""
    if not has_holes:
        return rows
    count = int(np.count_nonzero(rows))
    bits = np.frombuffer(planes.take_bytes((count + 7) // 8), dtype=np.uint8)
    flags = np.zeros(len(rows), dtype=bool)
    flags[rows] = np.unpackbits(bits, count=count).astype(bool)
    return flags


def _read_values(values: _Values, column: _Column, more: list[_Column]) -> npt.NDArray[Any] | list[str]:
    """The values of one column, as its coding says; kept where later ones are told by them."""
    found: Any
    if column.coding in _PLAIN:
        found = _PLAIN[column.coding](values, column.count)
    elif column.coding is Coding.PLACES:
        found = values.slots(column)
    elif column.coding is Coding.MORE_IDS:
        found = values.next_ids(column)
    else:
        found, numbers = values.ids(column, more)
        values.known[column.name] = column.on_rows(numbers)
    if column.name in {"dst", "tier"} and column.coding is Coding.NUMBERS:
        values.known[column.name] = column.on_rows(found + np.uint64(1))
    read: npt.NDArray[Any] | list[str] = found
    return read


_PLAIN: Final[dict[Coding, Callable[[_Values, int], Any]]] = {
    Coding.NUMBERS: _Values.numbers,
    Coding.SIGNED: lambda values, count: values.planes.take_signed(count),
    Coding.FLOATS: lambda values, count: values.planes.take(count).view(np.float64),
    Coding.BOOLS: lambda values, count: values.planes.take(count).astype(bool),
    Coding.TEXTS: _Values.texts,
}


def _on_rows(values: npt.NDArray[Any] | list[str], column: _Column, order: RowOrder) -> pa.Array[Any]:
    """Values where they belong, in the order of the rows."""
    rows, places = len(order.order), order.order[column.is_there]
    if isinstance(values, list):
        texts = np.full(rows, None, dtype=object)
        texts[places] = values
        return pa.array(texts, type=pa.utf8())
    whole = np.zeros(rows, dtype=values.dtype)
    whole[places] = values
    if len(places) == rows:
        return pa.array(whole)
    is_absent = np.ones(rows, dtype=bool)
    is_absent[places] = False
    return pa.array(whole, mask=is_absent)
