"""What a reader took out of its ring and could put nowhere: a short table in the ring's header.

It needs no disk, which may be the very thing that is full, and like the ring it outlives the reader: a shipper that is
killed leaves these ranges to be told by the next one. The reader writes it, the writer never looks.
"""

from collections.abc import Sequence

from kvtrail_schema.batch import DropRange
from kvtrail_schema.enums import Stage
from kvtrail_schema.reasons import DropReason

from kvtrail_agent import ring_layout as layout
from kvtrail_agent.ring_file import RingFile


class Refusals:
    """The table of one ring. One thread of the reader."""

    def __init__(self, ring: RingFile) -> None:
        self._ring = ring

    def ranges(self) -> tuple[DropRange, ...]:
        """What is to be told."""
        return tuple(self._range(entry) for entry in range(self._ring.word(layout.REFUSED)))

    def add(self, ranges: Sequence[DropRange]) -> bool:
        """Put ranges on the table, all or none, a range that continues the newest one into it; says whether they fit.

        They are there whole before their count is: a reader that is killed in between leaves the table as it was.
        """
        merged = _merged([*self.ranges()[-1:], *ranges])
        first = max(0, self._ring.word(layout.REFUSED) - 1)
        if first + len(merged) > layout.REFUSED_ENTRIES:
            return False
        for entry, drop in enumerate(merged, first):
            self._write(entry, drop)
        self._ring.set_word(layout.REFUSED, first + len(merged))
        return True

    def clear(self) -> None:
        """They are told."""
        self._ring.set_word(layout.REFUSED, 0)

    def _range(self, entry: int) -> DropRange:
        """One entry."""
        offset = layout.REFUSED_RANGES + entry * layout.DROP_BYTES
        stage, reason, first, last = layout.DROP.unpack_from(self._ring.memory, offset)
        return DropRange(Stage(stage), DropReason(reason), first, last, last - first + 1)

    def _write(self, entry: int, drop: DropRange) -> None:
        """The end of a range last, so that one which grows is right at every moment."""
        offset = layout.REFUSED_RANGES + entry * layout.DROP_BYTES
        self._ring.set_word(offset, drop.stage | drop.reason << 8)
        self._ring.set_word(offset + layout.DROP_FIRST, drop.first_seq)
        self._ring.set_word(offset + layout.DROP_LAST, drop.last_seq)


def _merged(ranges: Sequence[DropRange]) -> list[DropRange]:
    """Ranges in their order, neighbours of one stage and reason as one."""
    found: list[DropRange] = []
    for drop in ranges:
        last = found[-1] if found else None
        if last is not None and (last.stage, last.reason, last.last_seq + 1) == (drop.stage, drop.reason, drop.first_seq):
            found[-1] = DropRange(drop.stage, drop.reason, last.first_seq, drop.last_seq, last.count + drop.count)
        else:
            found.append(drop)
    return found
