"""`ORDER_VIOLATION` as events come in, of blocks that are saved before they are computed."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from kvtrail_schema.enums import Tier
from kvtrail_schema.kinds import Kind

from kvtrail_collector.invariants.found import Found, found_at
from kvtrail_collector.invariants.key_table import NOWHERE, KeyTable
from kvtrail_collector.invariants.rows import NO_ID, Bools, Ids, Ints, Rows, key_of
from kvtrail_collector.invariants.transitions import among

WHAT: Final = "saved before it was computed"
_NS_A_MS: Final = 1_000_000
_MOST_WAITING: Final = 4_096


class _Save(NamedTuple):
    """One row of a save."""

    t_ns: int
    seq: int


class EarlySaves:
    """Holds when each block was first on the gpu, whether it ever was, and saves of blocks that were not there yet.

    Whether a block ever was there is kept in two places of many: it may seem so of one that was not, never the other way round.
    """

    codes = ("ORDER_VIOLATION",)

    def __init__(self, places: int, slack_ms: float) -> None:
        self._made = KeyTable(places)
        self._ever = np.zeros(places << 4, dtype=np.bool_)
        self._waiting: dict[int, list[_Save]] = {}  # by block
        self._slack_ns = int(slack_ms * _NS_A_MS)
        self._is_full = False

    @property
    def is_sure(self) -> bool:
        """Whether nothing was forgotten."""
        return not self._made.forgotten and not self._is_full

    def look(self, rows: Rows) -> list[Found]:
        """Saves that began before their block was made."""
        saves = rows.of(Kind.SWAP_OUT_STARTED)
        saves = saves[(rows.numbers_at("src", saves) == Tier.GPU) & (rows.ids("block")[saves] != NO_ID)]
        made = rows.of(Kind.BLOCK_CREATED, Kind.SWAP_IN_LOADED)
        made = made[(rows.landing_tier(made) == Tier.GPU) & (rows.ids("block")[made] != NO_ID)]
        found = self._waited_for(rows, made)
        self._take_in(rows, made)
        return [*found, *self._saved(rows, saves)]

    def _waited_for(self, rows: Rows, made: Ints) -> list[Found]:
        """Saves of before whose blocks are made only now; whoever was made is waited for no more."""
        found: list[Found] = []
        if not self._waiting or not len(made):
            return found
        blocks = rows.ids("block")[made]
        for place in among(blocks, np.fromiter(self._waiting, dtype=np.uint64)).tolist():
            made_ns = int(rows.t_ns[made[place]])
            saves = self._waiting.pop(int(blocks[place]), [])
            found += [_early(save) for save in saves if made_ns - save.t_ns > self._slack_ns]
        return found

    def _take_in(self, rows: Rows, made: Ints) -> None:
        """Blocks that are made; of one that is made again, the first time holds."""
        keys = key_of(rows.ids("block")[made])
        held = self._made.put(keys)
        order = np.arange(len(made))[::-1]
        fresh = order[self._made.values(0, held[order]) == 0]
        self._made.set_values(0, held[fresh], rows.t_ns[made[fresh]])
        for bits in self._bits(keys):
            self._ever[bits] = True

    def _saved(self, rows: Rows, saves: Ints) -> list[Found]:
        """Saves that are early, as far as that is known; those of blocks that never were there wait for it."""
        keys = key_of(rows.ids("block")[saves])
        held = self._made.find(keys)
        early = (held != NOWHERE) & (self._made.values(0, held) - rows.t_ns[saves] > self._slack_ns)
        never = (held == NOWHERE) & ~self._was_ever(keys)
        for place in saves[never].tolist():
            self._wait(int(rows.ids("block")[place]), _Save(int(rows.t_ns[place]), int(rows.seq[place])))
        bad = saves[early]
        return found_at(self.codes[0], rows, bad, np.full(len(bad), Tier.GPU.value), WHAT)

    def _wait(self, block: int, save: _Save) -> None:
        """Wait for a block; of very many, the first is waited for no more."""
        self._waiting.setdefault(block, []).append(save)
        if len(self._waiting) > _MOST_WAITING or len(self._waiting[block]) > _MOST_WAITING:
            self._waiting.pop(next(iter(self._waiting)))
            self._is_full = True

    def _was_ever(self, keys: Ids) -> Bools:
        """Whether blocks were made at any time, or seem so."""
        first, second = self._bits(keys)
        return np.asarray(self._ever[first] & self._ever[second])

    def _bits(self, keys: Ids) -> tuple[Ids, Ids]:
        """The two places of each key."""
        most = np.uint64(len(self._ever) - 1)
        return (keys >> np.uint64(20)) & most, (keys >> np.uint64(42)) & most


def _early(save: _Save) -> Found:
    """The finding of a save of before."""
    return Found(EarlySaves.codes[0], Tier.GPU.value, WHAT, 1, (save.seq,), save.t_ns, save.t_ns)
