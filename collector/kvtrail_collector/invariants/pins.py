"""`REFCOUNT_NEGATIVE` as events come in: how many references each copy has, as its events count them."""

from __future__ import annotations

import numpy as np
from kvtrail_schema.kinds import Kind

from kvtrail_collector.invariants.found import Found, found_at
from kvtrail_collector.invariants.key_table import KeyTable
from kvtrail_collector.invariants.rows import Ints, Rows, key_of

_BALANCE, _REFS, _KNOWN = 0, 1, 2


class PinBalances:
    """Holds the balance of each copy. One that is forgotten begins anew with what its next event says: never falsely."""

    codes = ("REFCOUNT_NEGATIVE",)

    def __init__(self, places: int) -> None:
        self._copies = KeyTable(places, columns=3)

    @property
    def is_sure(self) -> bool:
        """Whether no copy was forgotten."""
        return not self._copies.forgotten

    def look(self, rows: Rows) -> list[Found]:
        """References that are given back and were not taken."""
        pins = rows.of(Kind.BLOCK_PINNED, Kind.BLOCK_UNPINNED)
        if not len(pins):
            return []
        tiers = rows.numbers("tier")
        keys = key_of(rows.ids("block")[pins], tiers[pins], rows.numbers_at("slot", pins))
        order = np.argsort(keys, kind="stable")
        keys, pins = keys[order], pins[order]
        first = np.concatenate([[True], keys[1:] != keys[:-1]])
        change = np.where(rows.kind[pins] == Kind.BLOCK_PINNED, 1, -1)
        refs = rows.numbers_at("refs", pins)
        held = self._copies.put(keys)
        known = self._copies.values(_KNOWN, held) == 1
        base = np.where(known, self._copies.values(_BALANCE, held), refs - change)
        balance = _running(base, change, first)
        refs_before = np.where(first, np.where(known, self._copies.values(_REFS, held), -1), np.roll(refs, 1))
        for column, values in ((_BALANCE, balance), (_REFS, refs), (_KNOWN, np.ones_like(refs))):
            self._copies.set_values(column, held, values)
        bad = np.sort(pins[(change < 0) & ((balance < 0) | (refs_before == 0))])
        return found_at(self.codes[0], rows, bad, tiers[bad])


def _running(base: Ints, change: Ints, first: Ints) -> Ints:
    """The balance after each row: what its copy had at its first row, and all changes since."""
    total = np.cumsum(change)
    start = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
    return base[start] + total - total[start] + change[start]
