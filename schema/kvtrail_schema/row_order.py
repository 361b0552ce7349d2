"""The order in which columns travel: rows by kind, and within a kind by request.

Then whether a field is there hardly ever changes, and the blocks of a request stand on its rows of one kind as they stood on
those of another. Sender and reader both make the order out of columns that travel before: nothing of it is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
Unsigned = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class RowOrder:
    """An order of rows. `order` says which row stands where; `ranks` of which kind it is, as a place among `kinds`."""

    order: Places
    ranks: npt.NDArray[np.uint16]
    counts: npt.NDArray[np.int64]
    kinds: int

    def flags_of(self, is_there: Flags) -> tuple[Flags, bool]:
        """Of which kinds a column (in this order) has values, and whether some row of those has none."""
        starts = np.cumsum(self.counts) - self.counts
        found = np.add.reduceat(is_there.astype(np.int64), starts)
        some = found > 0
        return some, bool((some & (found < self.counts)).any())

    def rows_of(self, some: Flags) -> Flags:
        """Which rows (in this order) are of some kinds."""
        rows: Flags = np.repeat(some, self.counts)
        return rows


def by_kind(kinds: npt.NDArray[np.uint16]) -> RowOrder:
    """Rows by kind; those of one kind in their order."""
    counts = np.bincount(kinds)
    present = np.flatnonzero(counts)
    rank_of = np.zeros(len(counts), dtype=np.uint16)
    rank_of[present] = np.arange(len(present))
    order = np.argsort(kinds, kind="stable")
    return RowOrder(order, rank_of[kinds[order]], counts[present].astype(np.int64), len(present))


def by_request(rows: RowOrder, requests: Unsigned) -> RowOrder:
    """Rows by kind and within it by request: `requests` numbers them in the order of `rows`, 0 where a row has none."""
    keys = rows.ranks * (requests.max() + np.uint64(1)) + requests
    again = stable_order(keys)
    return RowOrder(rows.order[again], rows.ranks, rows.counts, rows.kinds)


def stable_order(keys: Unsigned) -> Places:
    """The order of some keys, equal ones as they stood. Short numbers are sorted several times as fast."""
    short: npt.NDArray[Any] = keys.astype(np.uint16) if len(keys) and int(keys.max()) < 1 << 16 else keys
    return np.argsort(short, kind="stable")
