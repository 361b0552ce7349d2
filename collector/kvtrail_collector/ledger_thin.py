"""Rows of transfers that a ledger cannot tell from their neighbours are left out before facts are built.

A transfer has a row for each of its blocks at each of its stations; of those that stand together a ledger needs the first,
the earliest, the latest, and the one that bears the parts. That is one row in three, or fewer.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts_rows import BoolArray, IntArray

_PARTS: Final = ("queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns")
_SAME: Final = ("kind", "op", "req", "prefetch", "ns", "queue", "src", "dst")
_SWAPS: Final = pa.array([kind.value for kind in Kind if kind.name.startswith("SWAP_")], pa.uint16())


def thinned(table: pa.Table) -> pa.Table:
    """A table of events without rows of blocks that change no ledger; bytes of transfers do not add up in it. Pure."""
    swaps = np.asarray(pc.is_in(table["kind"], value_set=_SWAPS))
    if not swaps.any():
        return table
    places = np.flatnonzero(swaps)
    kept = ~swaps
    kept[places] = _needed(table.select([*_SAME, *_PARTS, "seq", "t_ns"]).combine_chunks().filter(pa.array(swaps)))
    return table.filter(pa.array(kept))


def _needed(moves: pa.Table) -> BoolArray:
    """Which rows of transfers cannot be left out."""
    first = _run_begins(moves)
    starts = np.flatnonzero(first)
    run = np.cumsum(first) - 1
    t_ns, seq = moves["t_ns"].to_numpy(), moves["seq"].to_numpy()
    needed = _bearing(moves)
    needed |= t_ns == np.minimum.reduceat(t_ns, starts)[run]
    needed |= t_ns == np.maximum.reduceat(t_ns, starts)[run]
    needed |= seq == np.minimum.reduceat(seq, starts)[run]
    return needed


def _run_begins(moves: pa.Table) -> BoolArray:
    """Where a row differs from the one before it in what a ledger looks at, beside times and parts."""
    first = np.zeros(moves.num_rows, dtype=np.bool_)
    first[0] = True
    for name in _SAME:
        values = _filled(moves[name])
        first[1:] |= values[1:] != values[:-1]
    return first


def _bearing(moves: pa.Table) -> BoolArray:
    """Which rows bear a part."""
    bearing = np.zeros(moves.num_rows, dtype=np.bool_)
    for name in _PARTS:
        if moves[name].null_count < moves.num_rows:
            bearing |= np.asarray(pc.is_valid(moves[name]))
    return bearing


def _filled(column: pa.ChunkedArray[Any]) -> IntArray:
    """A column as numbers that differ where its values do: an absent one is the largest of its type, which no event bears."""
    largest = np.iinfo(column.type.to_pandas_dtype()).max
    return np.asarray(column.fill_null(pa.scalar(int(largest), column.type)))
