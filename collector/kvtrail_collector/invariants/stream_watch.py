"""All checkers of one stream, and what they found in it so far."""

from __future__ import annotations

from typing import Final, NamedTuple

from kvtrail_collector.detectors.rules import RULES
from kvtrail_collector.invariants.cleared import ClearedTiers
from kvtrail_collector.invariants.corrupt import CorruptBlocks
from kvtrail_collector.invariants.declared import Declared
from kvtrail_collector.invariants.early_saves import EarlySaves
from kvtrail_collector.invariants.found import Checker, Found
from kvtrail_collector.invariants.overlaps import Overlaps
from kvtrail_collector.invariants.pins import PinBalances
from kvtrail_collector.invariants.released import ReleasedCopies
from kvtrail_collector.invariants.rows import Rows
from kvtrail_collector.invariants.signs_of_life import SignsOfLife
from kvtrail_collector.invariants.single_rows import Settings, SingleRows

PLACES: Final = 1 << 16
"""Copies and places that are held for each stream; of transfers under way, pins and clears half as many."""
_BY_ABSENCE: Final = {rule.code for rule in RULES if rule.evidence.is_absence} | {"ORDER_VIOLATION"}

Sort = tuple[str, int | None, str]
"""A code, its tier, and what is wrong."""


class Progress(NamedTuple):
    """How far a stream was looked at: up to which seq, how many rows, how many seqs before that were not looked at."""

    until_seq: int
    rows: int
    missed: int


class StreamWatch:
    """Used by one thread. At most some 9 MB; half a microsecond a row.

    `until_seq` is the last seq that an earlier watch of the stream looked at: what it held is forgotten, what it found is not.
    """

    def __init__(self, settings: Settings, places: int = PLACES, until_seq: int = 0) -> None:
        self.life = SignsOfLife()
        few = places >> 1
        self._checkers: tuple[Checker, ...] = (
            SingleRows(settings),
            Declared(),
            ReleasedCopies(places),
            Overlaps(places),
            EarlySaves(few, settings["ORDER_VIOLATION"]["slack_ms"]),
            PinBalances(few),
            ClearedTiers(few),
            CorruptBlocks(),
            self.life,
        )
        self._found: dict[Sort, Found] = {}
        self._until_seq, self._rows, self._missed = until_seq, 0, until_seq

    @property
    def progress(self) -> Progress:
        """How far it came."""
        return Progress(self._until_seq, self._rows, self._missed)

    def look(self, rows: Rows) -> None:
        """Take in rows that were committed; those that come late, behind others that were looked at, are left out."""
        fresh = rows if len(rows) and rows.seq[0] > self._until_seq else rows.after(self._until_seq)
        if not len(fresh):
            return
        last = int(fresh.seq[-1])
        self._missed += max(last - self._until_seq - len(fresh), 0)
        self._until_seq, self._rows = last, self._rows + len(fresh)
        for checker in self._checkers:
            for found in checker.look(fresh):
                sort = (found.code, found.tier, found.what)
                self._found[sort] = self._found[sort].plus(found) if sort in self._found else found

    def found(self) -> dict[Sort, Found]:
        """What is sure: of what follows from absence only what more rows say than were not looked at."""
        return {sort: one for sort, one in self._found.items() if one.code not in _BY_ABSENCE or one.cases > self._missed}

    def unknown(self) -> tuple[str, ...]:
        """Codes of which it may have missed something, since it had to forget, or some rows were not looked at."""
        unsure = {code for checker in self._checkers if not checker.is_sure for code in checker.codes}
        if self._missed:
            unsure |= {code for checker in self._checkers for code in checker.codes}
        return tuple(sorted(unsure))
