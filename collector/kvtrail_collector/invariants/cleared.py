"""`READ_OF_CLEARED` as events come in: which tiers were cleared, and which of their blocks were filled since."""

from __future__ import annotations

from typing import Final

import numpy as np
from kvtrail_schema.kinds import Kind

from kvtrail_collector.invariants.found import Found, found_at
from kvtrail_collector.invariants.key_table import NOWHERE, KeyTable
from kvtrail_collector.invariants.rows import NO_ID, Ids, Ints, Rows, key_of
from kvtrail_collector.invariants.transitions import Keyed, last_before

_FILLS: Final = (Kind.BLOCK_CREATED, Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN)
_MOST_CLEARS: Final = 64


class ClearedTiers:
    """Holds clears, and from the first one on when each block was last filled in each tier. Costs nothing before it."""

    codes = ("READ_OF_CLEARED",)

    def __init__(self, places: int) -> None:
        self._clears: dict[tuple[int, int], int] = {}  # by tier and namespace, that of a whole tier being none: the last seq
        self._filled = KeyTable(places)
        self._is_full = False

    @property
    def is_sure(self) -> bool:
        """Whether no fill was forgotten."""
        return not self._filled.forgotten and not self._is_full

    def look(self, rows: Rows) -> list[Found]:
        """Reads of blocks that nothing filled since their tier was cleared."""
        clears = rows.of(Kind.TIER_CLEARED)
        if not self._clears and not len(clears):
            return []
        reads, fills = rows.of(Kind.ATTENTION_READ), rows.of(*_FILLS)
        filled = Keyed(key_of(rows.ids("block")[fills], rows.landing_tier(fills)), fills)
        found = self._stale(rows, filled, reads, clears) if self.is_sure else []
        self._advance(rows, filled, clears)
        return found

    def _stale(self, rows: Rows, filled: Keyed, reads: Ints, clears: Ints) -> list[Found]:
        """Reads after a clear of their tier, and of their namespace where it was of one, with no fill between."""
        tiers = rows.numbers("tier")
        keys = key_of(rows.ids("block")[reads], tiers[reads])
        cleared = np.maximum(
            self._cleared_seq(rows, reads, clears, whole=True), self._cleared_seq(rows, reads, clears, whole=False)
        )
        held, last = self._filled.find(keys), last_before(filled, Keyed(keys, reads))
        before = np.where(held != NOWHERE, self._filled.values(0, held), 0)
        filled_seq = np.where(last >= 0, rows.seq[last], before)
        stale = reads[(cleared > 0) & (filled_seq < cleared)]
        return found_at(self.codes[0], rows, stale, tiers[stale])

    def _cleared_seq(self, rows: Rows, reads: Ints, clears: Ints, *, whole: bool) -> Ints:
        """The seq of the last clear before each read, of its whole tier or of its namespace in it; 0 where there was none."""
        own = clears[(rows.ids("ns")[clears] == NO_ID) == whole]
        tiers, spaces = rows.numbers("tier"), self._spaces(rows, whole=whole)
        last = last_before(Keyed(key_of(tiers[own], spaces[own]), own), Keyed(key_of(tiers[reads], spaces[reads]), reads))
        pairs = zip(tiers[reads].tolist(), spaces[reads].tolist(), strict=True)
        known = np.array([self._clears.get(pair, 0) for pair in pairs] if self._clears else [0] * len(reads), dtype=np.int64)
        nobody = (spaces[reads] == NO_ID) & (not whole)
        return np.where(nobody, 0, np.where(last >= 0, rows.seq[last], known))

    def _spaces(self, rows: Rows, *, whole: bool) -> Ids:
        """The namespace of each row; none where clears of whole tiers are asked for."""
        return np.full(len(rows), NO_ID) if whole else rows.ids("ns")

    def _advance(self, rows: Rows, filled: Keyed, clears: Ints) -> None:
        """Take these rows in."""
        self._filled.set_values(0, self._filled.put(filled.keys), rows.seq[filled.places])
        for place in clears.tolist():
            self._clears[int(rows.numbers("tier")[place]), int(rows.ids("ns")[place])] = int(rows.seq[place])
        if len(self._clears) > _MOST_CLEARS:
            self._is_full = True
