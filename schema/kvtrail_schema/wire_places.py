"""Slots on the wire: a copy is a block in a tier, and stays where it is. What moves is told as a step from the row before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from kvtrail_schema.row_order import Flags, Places, Unsigned, stable_order

Signed = npt.NDArray[np.int64]

_TIERS: Final = 1 << 9
"""More than a column of tiers can say."""


def copies_of(known: Mapping[str, Unsigned], rows: int) -> Unsigned:
    """A number a row for the copy that it is about, of its `block`, and `dst` or else `tier`: 0 each where a row has none."""
    nothing = np.zeros(rows, dtype=np.uint64)
    block, dst, tier = (known.get(name, nothing) for name in ("block", "dst", "tier"))
    copies: Unsigned = block * np.uint64(_TIERS) + np.where(dst > 0, dst, tier)
    return copies


def sorted_by_copy(copies: Unsigned) -> tuple[Places, Flags]:
    """Rows copy by copy, and which of them, in this order, are the first of their copy."""
    order = stable_order(copies)
    firsts = np.ones(len(order), dtype=bool)
    firsts[1:] = copies[order[1:]] != copies[order[:-1]]
    return order, firsts


def split(slots: Signed, order: Places, firsts: Flags) -> tuple[Signed, Signed]:
    """Slots as the first of each copy, and the steps of the others from the one before."""
    ordered = slots[order]
    steps = np.diff(ordered, prepend=np.int64(0))
    return ordered[firsts], steps[~firsts]


def join(first_slots: Signed, steps: Signed, order: Places, firsts: Flags) -> Signed:
    """The inverse of `split`."""
    ordered = np.empty(len(order), dtype=np.int64)
    ordered[firsts], ordered[~firsts] = first_slots, steps
    sums = np.cumsum(ordered)
    begins = np.flatnonzero(firsts)
    before = sums[begins] - first_slots
    lengths = np.diff(begins, append=len(order))
    slots = np.empty_like(sums)
    slots[order] = sums - np.repeat(before, lengths)
    return slots
