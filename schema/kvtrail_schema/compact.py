"""Columns of a body of version 2 as they were: rows by kind, differences, narrow integers, ids that point to where they stood.

Nothing writes this version any more; frames of it lie in spools, in topics and in files.

A body of version 2 is known by its column `seq~`, the differences of seqs; no field has a `~` in its name. `seq~`, `t_ns`
and `kind` stand in the order of the rows. All others stand by kind, rows of one kind in their order: then whether a field is
there hardly ever changes, and events of different kinds about the same blocks are runs of the same numbers. The reader needs
nothing but `kind` to undo it.

Most of a batch is ids of blocks: random numbers that no compressor can shorten, but that stand on many rows. `block` and
`parent` are one sequence of cells, row by row, block before parent. A cell whose id stood before says how many cells back,
in `block~` or `parent~`; 0 says that the id is new, and new ids stand one after the other in the columns `block` and
`parent` themselves, from their first row on.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]

SEQ_STEPS: Final = "seq~"
GROUP: Final = ("block", "parent")
BACK: Final = tuple(f"{name}~" for name in GROUP)

_IN_ORDER: Final = frozenset({"kind", "t_ns", "seq"})


def expand(table: pa.Table) -> pa.Table:
    """The columns of a body as fields. Allocates a few numbers a row; trusts nothing.

    Raises:
        ValueError, TypeError: the columns with `~` make no sense.
    """
    if SEQ_STEPS not in table.column_names:
        return table
    if "seq" in table.column_names:
        raise ValueError("seqs and differences of seqs in one body")
    columns = {name: _one(table, name) for name in table.column_names if name not in _IN_ORDER}
    steps = _whole(columns.pop(SEQ_STEPS), "differences of seqs").cast(pa.int64()).to_numpy().view(np.uint64)
    if any(name in columns for name in BACK):
        columns |= _follow(columns, table.num_rows)
        for name in BACK:
            columns.pop(name, None)
    places = np.empty(table.num_rows, dtype=np.int64)
    places[_by_kind(_one(table, "kind"))] = np.arange(table.num_rows)
    found = pa.table(columns).take(places) if columns else table.select([])
    for name in ("kind", "t_ns"):
        found = found.append_column(name, table[name])
    return found.append_column("seq", pa.array(np.cumsum(steps, dtype=np.uint64)))


def _by_kind(kinds: pa.Array[Any]) -> Numbers:
    """The rows of each kind in their order, one kind after the other."""
    numbers = _whole(kinds, "kinds").to_numpy()
    return np.argsort(numbers, kind="stable")


def _one(table: pa.Table, name: str) -> pa.Array[Any]:
    """A column as one array."""
    chunks = table[name].chunks
    whole: Any = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks or [pa.array([], table[name].type)])
    array: pa.Array[Any] = whole
    return array


def _follow(columns: dict[str, pa.Array[Any]], rows: int) -> dict[str, pa.Array[Any]]:
    """The ids of a group, each taken from where it stood first."""
    distances, is_there = np.zeros(2 * rows, dtype=np.int64), np.zeros(2 * rows, dtype=bool)
    for place, back in enumerate(BACK):
        if back in columns:
            column = columns[back]
            is_there[place::2] = column.is_valid().to_numpy(zero_copy_only=False)
            distances[place::2] = _whole(column, "distances", nulls=True).fill_null(0).cast(pa.int64()).to_numpy()
    new = is_there & (distances == 0)
    sources = _roots(distances, is_there)
    ids = _new_ids(columns, int(new.sum()))[(np.cumsum(new) - 1)[sources]] if new.any() else np.zeros(2 * rows, np.uint64)
    return {name: pa.array(ids[place::2], mask=~is_there[place::2]) for place, name in enumerate(GROUP)}


def _roots(distances: Numbers, is_there: npt.NDArray[np.bool_]) -> Numbers:
    """For each cell the one where its id is new; each look doubles how far it sees."""
    cells = np.arange(len(distances))
    targets = cells - distances
    if (distances < 0).any() or (targets < 0).any() or not is_there[targets[is_there]].all():
        raise ValueError("an id that points to where none is")
    while True:
        further = targets[targets]
        if (further == targets).all():
            return targets
        targets = further


def _new_ids(columns: dict[str, pa.Array[Any]], count: int) -> npt.NDArray[np.uint64]:
    """The ids that are new, in order."""
    parts = [
        _whole(columns[name], name, nulls=True).drop_null().cast(pa.uint64()).to_numpy() for name in GROUP if name in columns
    ]
    ids = np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)
    if len(ids) != count:
        raise ValueError(f"{len(ids)} new ids where {count} are pointed to")
    return ids


def _whole(column: pa.Array[Any], what: str, *, nulls: bool = False) -> pa.Array[Any]:
    """A column of whole numbers.

    Raises:
        TypeError: it is none, or has holes where it may not.
    """
    if not pa.types.is_integer(column.type) or (column.null_count and not nulls):
        raise TypeError(f"{what} are {column.type} with {column.null_count} nulls, not whole numbers")
    return column
