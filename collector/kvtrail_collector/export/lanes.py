"""Slices that overlap, laid on as few lanes as hold them apart."""

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kvtrail_collector.export.shapes import Slice


class Laid(NamedTuple):
    """A slice and the number of its lane, from 0 on."""

    lane: int
    piece: Slice


def lay(slices: Iterable[Slice]) -> Iterator[Laid]:
    """Give each slice a lane on which nothing else is at that time. In the order of their starts, O(n log n).

    As few lanes as slices ever overlap: a lane is free again from the moment at which its slice ends.
    """
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    lanes = 0
    for piece in sorted(slices, key=lambda one: (one.start_ns, one.end_ns)):
        while busy and busy[0][0] <= piece.start_ns:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            heapq.heappush(free, lanes)
            lanes += 1
        lane = heapq.heappop(free)
        # A slice without length keeps its lane for an instant, so that two of them never coincide.
        heapq.heappush(busy, (max(piece.end_ns, piece.start_ns + 1), lane))
        yield Laid(lane, piece)
