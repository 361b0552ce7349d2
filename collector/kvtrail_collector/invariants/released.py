"""`READ_AFTER_RELEASE` as events come in: which copies left their place, and are read though nothing filled it again."""

from __future__ import annotations

from typing import Final

import numpy as np
from kvtrail_schema.enums import Reason
from kvtrail_schema.kinds import Kind

from kvtrail_collector.invariants.found import Found, found_at
from kvtrail_collector.invariants.key_table import NOWHERE, KeyTable
from kvtrail_collector.invariants.rows import ABSENT, Bools, Ints, Rows, key_of
from kvtrail_collector.invariants.transitions import Keyed, among, last_before

_FILLS: Final = (Kind.BLOCK_CREATED, Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN)
_MOVES: Final = (Kind.EVICTED, Kind.INVALIDATED, *_FILLS)
_SEQ, _T_NS, _RELEASED = 0, 1, 2


class ReleasedCopies:
    """Holds the copies that left their place, until it is filled again."""

    codes = ("READ_AFTER_RELEASE",)

    def __init__(self, places: int) -> None:
        self._gone = KeyTable(places, columns=3)
        self._filled = KeyTable(places >> 2)  # by fills that do not say which place: block and tier

    @property
    def is_sure(self) -> bool:
        """Whether no copy was forgotten."""
        return not self._gone.forgotten and not self._filled.forgotten

    def look(self, rows: Rows) -> list[Found]:
        """Reads of copies that are gone."""
        reads, moves = rows.of(Kind.ATTENTION_READ), rows.of(*_MOVES)
        tiers, slots = rows.landing_tier(moves), rows.numbers("slot")[moves]
        keyed = Keyed(key_of(rows.ids("block")[moves], tiers, slots), moves)
        loose = self._loose(rows, moves, tiers, slots)
        found = self._stale(rows, keyed, reads, loose) if len(reads) else []
        self._advance(rows, keyed, loose)
        return found

    def _stale(self, rows: Rows, moves: Keyed, reads: Ints, loose: Keyed) -> list[Found]:
        """Of the reads whose copy is gone or went in these rows: those before which that was the last that happened to it."""
        tiers = rows.numbers("tier")
        keys = key_of(rows.ids("block")[reads], tiers[reads], rows.numbers("slot")[reads])
        before = self._gone.find(keys)
        went = moves.keys[~rows.are(moves.places, *_FILLS)]
        asked = np.union1d(np.flatnonzero(before != NOWHERE), among(keys, went))
        if not len(asked) or self._filled.forgotten:
            return []
        own = Keyed(keys[asked], reads[asked])
        last = last_before(moves.only(among(moves.keys, own.keys)), own)
        here = self._is_release(rows, last) & (rows.t_ns[last] <= rows.t_ns[own.places])
        gone = np.where(last >= 0, here, self._was_release(rows, before[asked], own.places))
        gone_seq = np.where(last >= 0, rows.seq[last], self._gone.values(_SEQ, before[asked]))
        stale = own.places[gone & (self._loose_seq(rows, own.places, loose) < gone_seq)]
        return found_at(self.codes[0], rows, stale, tiers[stale])

    def _is_release(self, rows: Rows, places: Ints) -> Bools:
        """Whether rows are evictions for anything but a clear."""
        kinds, reasons = rows.kind[places], rows.numbers("reason")[places]
        return np.asarray((kinds == Kind.EVICTED) & (reasons != Reason.CLEAR) & (reasons != ABSENT))

    def _was_release(self, rows: Rows, held: Ints, reads: Ints) -> Bools:
        """Whether what was known before says so, and not of a later moment than the read's."""
        known = (held != NOWHERE) & (self._gone.values(_RELEASED, held) == 1)
        return np.asarray(known & (self._gone.values(_T_NS, held) <= rows.t_ns[reads]))

    def _loose(self, rows: Rows, moves: Ints, tiers: Ints, slots: Ints) -> Keyed:
        """Fills that do not say which place they filled: they may have filled any of the block's."""
        loose = np.flatnonzero((slots == ABSENT) & rows.are(moves, *_FILLS))
        return Keyed(key_of(rows.ids("block")[moves[loose]], tiers[loose]), moves[loose])

    def _loose_seq(self, rows: Rows, reads: Ints, loose: Keyed) -> Ints:
        """The seq of the last such fill before each read; -1 where there was none."""
        keys = key_of(rows.ids("block")[reads], rows.numbers("tier")[reads])
        held = self._filled.find(keys)
        before = np.where(held != NOWHERE, self._filled.values(0, held), -1)
        last = last_before(loose, Keyed(keys, reads))
        return np.where(last >= 0, rows.seq[last], before)

    def _advance(self, rows: Rows, moves: Keyed, loose: Keyed) -> None:
        """Take these rows in: what left its place is held, what was filled is not."""
        filling = rows.are(moves.places, *_FILLS)
        self._gone.put(moves.keys[~filling])
        held = self._gone.find(moves.keys)
        released = self._is_release(rows, moves.places).astype(np.int64)
        for column, values in ((_SEQ, rows.seq[moves.places]), (_T_NS, rows.t_ns[moves.places]), (_RELEASED, released)):
            self._gone.set_values(column, held, np.where(filling, -1, values))
        self._gone.remove(held[(held != NOWHERE) & (self._gone.values(_SEQ, held) < 0)])
        self._filled.set_values(0, self._filled.put(loose.keys), rows.seq[loose.places])
