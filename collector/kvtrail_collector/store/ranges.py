"""Sets of sequence numbers as sorted, disjoint, inclusive ranges: what the books of a stream are kept in.

Pure values. All operations are linear in the number of ranges, which is one per hole: a few, in a healthy stream.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class SeqRange(NamedTuple):
    """All numbers from `first` to `last`, both included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class RangeSet:
    """A set of numbers. `ranges` are sorted, disjoint, and never touch each other."""

    ranges: tuple[SeqRange, ...] = ()

    def __iter__(self) -> Iterator[SeqRange]:
        return iter(self.ranges)

    @property
    def size(self) -> int:
        """How many numbers are in the set."""
        return sum(last - first + 1 for first, last in self.ranges)

    @property
    def highest(self) -> int:
        """The largest number in the set; 0 for an empty set."""
        return self.ranges[-1].last if self.ranges else 0

    def add(self, others: Iterable[SeqRange]) -> RangeSet:
        """The union with some ranges, which may come in any order and overlap."""
        return merged([*self.ranges, *others])

    def subtract(self, other: RangeSet) -> RangeSet:
        """What is in this set and not in the other."""
        left: list[SeqRange] = []
        for first, last in self.ranges:
            left.extend(_outside(first, last, other.overlapping(first, last)))
        return RangeSet(tuple(left))

    def intersect(self, other: RangeSet) -> RangeSet:
        """What is in both sets."""
        return self.subtract(self.subtract(other))

    def overlapping(self, first: int, last: int) -> tuple[SeqRange, ...]:
        """The ranges of this set that share a number with [first, last], unclipped."""
        begin = bisect_left(self.ranges, first, key=lambda part: part.last)
        end = bisect_left(self.ranges, last + 1, key=lambda part: part.first)
        return self.ranges[begin:end]


def merged(ranges: Iterable[SeqRange]) -> RangeSet:
    """Ranges in any order, overlapping or touching, as one set."""
    done: list[SeqRange] = []
    for first, last in sorted(ranges):
        if done and first <= done[-1].last + 1:
            done[-1] = SeqRange(done[-1].first, max(done[-1].last, last))
        else:
            done.append(SeqRange(first, last))
    return RangeSet(tuple(done))


def holes(seen: RangeSet, highest: int) -> RangeSet:
    """The numbers from 1 to `highest` that are not in a set."""
    return RangeSet((SeqRange(1, highest),) if highest else ()).subtract(seen)


def runs(numbers: NDArray[np.uint64]) -> list[SeqRange]:
    """The unbroken runs of ascending numbers. Vectorised: about a millisecond for 100,000."""
    if not numbers.size:
        return []
    breaks = np.flatnonzero(np.diff(numbers) != 1)
    starts = numbers[np.concatenate(([0], breaks + 1))]
    ends = numbers[np.concatenate((breaks, [numbers.size - 1]))]
    return [SeqRange(int(first), int(last)) for first, last in zip(starts, ends, strict=True)]


def positions_of_new(numbers: NDArray[np.uint64], stored: RangeSet) -> NDArray[np.bool_]:
    """Which of some ascending numbers are not in a set."""
    new = np.ones(numbers.size, dtype=np.bool_)
    if not numbers.size:
        return new
    for first, last in stored.overlapping(int(numbers[0]), int(numbers[-1])):
        low, high = np.searchsorted(numbers, np.array([first, last + 1], dtype=np.uint64))
        new[low:high] = False
    return new


def _outside(first: int, last: int, cuts: tuple[SeqRange, ...]) -> Iterator[SeqRange]:
    """What is left of [first, last] when the cuts, sorted and disjoint, are taken out."""
    at = first
    for cut in cuts:
        if at < cut.first:
            yield SeqRange(at, cut.first - 1)
        at = cut.last + 1
    if at <= last:
        yield SeqRange(at, last)
