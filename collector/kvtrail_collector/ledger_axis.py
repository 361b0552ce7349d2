"""All requests on one line: their intervals laid end to end, so that one sort serves all of them.

Request i owns [origin[i], origin[i + 1]) of the axis. Whatever happened to it is placed there, clipped to its interval.
So an interval is two numbers, what is stronger is a set of disjoint intervals, and what it leaves free of any interval
is the difference of two look-ups. Nothing is cut to pieces.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from kvtrail_collector.facts_rows import IntArray

_NOTHING: Final = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Axis:
    """Where each request's interval [start, end) lies on the line."""

    start_ns: IntArray
    end_ns: IntArray
    origin: IntArray

    @classmethod
    def of(cls, start_ns: IntArray, end_ns: IntArray) -> Self:
        """The line of these intervals, none of which is negative."""
        origin = np.zeros(len(start_ns) + 1, dtype=np.int64)
        np.cumsum(end_ns - start_ns, out=origin[1:])
        return cls(start_ns, end_ns, origin)

    def __len__(self) -> int:
        """How many requests."""
        return len(self.start_ns)

    def place(self, request: IntArray, t_ns: IntArray) -> IntArray:
        """Where instants of requests lie; those outside a request's interval at its nearer end."""
        start = self.start_ns[request]
        return self.origin[request] + np.minimum(np.maximum(t_ns, start), self.end_ns[request]) - start

    def instant(self, request: IntArray, place: IntArray) -> IntArray:
        """The instants that lie at places of requests."""
        return self.start_ns[request] + place - self.origin[request]

    def owner(self, place: IntArray) -> IntArray:
        """The requests to whom intervals belong that begin at these places and are not empty."""
        return np.asarray(np.searchsorted(self.origin, place, side="right") - 1)


@dataclass(frozen=True, slots=True)
class Cover:
    """A set of disjoint intervals in order, and how much of the line they cover before each of them."""

    starts: IntArray
    ends: IntArray
    before: IntArray

    @classmethod
    def nothing(cls) -> Self:
        """Covers nothing."""
        return cls.of(_NOTHING, _NOTHING)

    @classmethod
    def of(cls, starts: IntArray, ends: IntArray) -> Self:
        """The union of intervals, empty ones left out."""
        low, high = _union(starts, ends)
        # One empty interval before all others spares a test for each look-up.
        low, high = np.concatenate([[np.int64(-1)], low]), np.concatenate([[np.int64(-1)], high])
        before = np.zeros(len(low), dtype=np.int64)
        np.cumsum((high - low)[:-1], out=before[1:])
        return cls(low, high, before)

    def free_until(self, place: IntArray) -> IntArray:
        """How much of the line is free before each place, all of which are on it."""
        if len(self.starts) == 1:
            return place
        at = np.searchsorted(self.starts, place, side="right") - 1
        return place - self.before[at] - np.minimum(place, self.ends[at]) + self.starts[at]

    def free(self, starts: IntArray, ends: IntArray) -> IntArray:
        """How much is free of each interval."""
        return self.free_until(np.maximum(starts, ends)) - self.free_until(starts)

    def plus(self, starts: IntArray, ends: IntArray) -> "Cover":
        """The union with more intervals."""
        if not len(starts):
            return self
        return Cover.of(np.concatenate([self.starts[1:], starts]), np.concatenate([self.ends[1:], ends]))

    def gaps(self, until: int) -> tuple[IntArray, IntArray]:
        """What is free of [0, until), as disjoint intervals in order."""
        starts = np.maximum(self.ends, 0)
        ends = np.concatenate([self.starts[1:], [np.int64(until)]])
        real = ends > starts
        return starts[real], ends[real]


def _union(starts: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    """Disjoint intervals in order that cover what these do; intervals that touch become one."""
    real = ends > starts
    starts, ends = starts[real], ends[real]
    if not len(starts):
        return _NOTHING, _NOTHING
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    first = np.concatenate([[0], np.flatnonzero(starts[1:] > reach[:-1]) + 1])
    return starts[first], reach[np.concatenate([first[1:], [len(starts)]]) - 1]


def ends_last(starts: IntArray, ends: IntArray) -> IntArray:
    """Up to where each interval owns what it covers, where of several the one that ends last does.

    The intervals come in the order in which they own an instant that several cover, those of a later region first. An
    interval that ends later leaves others what lies before its start, so each keeps [start, result), or nothing.
    """
    if not len(starts):
        return ends
    earliest = np.minimum.accumulate(starts)
    free = np.concatenate([ends[:1], np.minimum(ends[1:], earliest[:-1])])
    return np.asarray(np.maximum(free, starts))


def pairs(left: IntArray, right_bounds: IntArray) -> tuple[IntArray, IntArray]:
    """Every element of the left with every one of the right of the same group.

    `left` has the group of each left element; the right elements of group g stand at
    [right_bounds[g], right_bounds[g + 1]). Returns places on both sides, in the order of the left.
    """
    low = right_bounds[left]
    return expanded(low, right_bounds[left + 1] - low)


def expanded(low: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """For each i, low[i], low[i] + 1, … (counts[i] of them): the i of each, and the value."""
    of = np.repeat(np.arange(len(low)), counts)
    offset = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    return of, low[of] + offset


def distinct(values: IntArray) -> IntArray:
    """The values in order, each once. By sorting, which costs a tenth of hashing where most values differ."""
    ordered = np.sort(values)
    first = np.append([True], ordered[1:] != ordered[:-1])[: len(ordered)]
    return np.asarray(ordered[first])


def bounds_of(groups: IntArray, count: int) -> IntArray:
    """Where each group begins among sorted groups, and where the last one ends."""
    return np.asarray(np.searchsorted(groups, np.arange(count + 1)))
