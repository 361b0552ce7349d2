"""An interval that is given away piece by piece: whoever takes a piece first owns it."""

from collections.abc import Iterable

from kvtrail_collector.facts_rows import Interval
from kvtrail_collector.ledger_layout import Segment
from kvtrail_collector.ledger_parts import Label


class Canvas:
    """The part of one interval that nobody owns yet, and what was given to whom. Used by one thread.

    Everything that is taken leaves the free part, so whatever is painted, in whatever order, amounts add up to the
    length of the interval once nothing is free.
    """

    __slots__ = ("amounts", "free")

    def __init__(self, start_ns: int, end_ns: int) -> None:
        self.free: list[Interval] = [(start_ns, end_ns)] if end_ns > start_ns else []
        self.amounts: dict[Label, int] = {}

    def take(self, start_ns: int, end_ns: int) -> list[Interval]:
        """Remove what is free of an interval, and return it in order of time."""
        taken, self.free = _cut(self.free, start_ns, end_ns)
        return taken

    def give(self, label: Label, ns: int) -> None:
        """Add to what a label owns."""
        self.amounts[label] = self.amounts.get(label, 0) + ns

    def paint(self, start_ns: int, end_ns: int, label: Label) -> int:
        """Give what is free of an interval to a label; returns how much that was."""
        if not self.free or end_ns <= self.free[0][0] or start_ns >= self.free[-1][1]:
            return 0
        ns = sum(end - start for start, end in self.take(start_ns, end_ns))
        if ns:
            self.give(label, ns)
        return ns

    def paint_within(self, region: Iterable[Interval], segments: Iterable[Segment], hidden: dict[Label, int]) -> None:
        """Give segments what is free of them inside a region, and take that from what counted as hidden."""
        for low, high in region:
            for segment in segments:
                ns = self.paint(max(segment.start_ns, low), min(segment.end_ns, high), segment.label)
                if ns:
                    hidden[segment.label] = hidden.get(segment.label, 0) - ns


def _cut(free: list[Interval], start_ns: int, end_ns: int) -> tuple[list[Interval], list[Interval]]:
    """What of some disjoint intervals lies inside [start, end), and what is left of them."""
    taken: list[Interval] = []
    left: list[Interval] = []
    for low, high in free:
        if high <= start_ns or low >= end_ns or start_ns >= end_ns:
            left.append((low, high))
            continue
        if low < start_ns:
            left.append((low, start_ns))
        taken.append((max(low, start_ns), min(high, end_ns)))
        if high > end_ns:
            left.append((end_ns, high))
    return taken, left
