"""`CORRUPT_BLOCK` as events come in: which blocks failed their check, and whether anybody was served from them since."""

from __future__ import annotations

from typing import Final

import numpy as np
from kvtrail_schema.enums import Reason
from kvtrail_schema.kinds import Kind

from kvtrail_collector.invariants.found import Found, found_at
from kvtrail_collector.invariants.rows import ABSENT, Rows

SERVED: Final = "served after it failed"
_MOST: Final = 4_096
_FRESH: Final = (Kind.BLOCK_CREATED, Kind.SWAP_IN_LOADED)


class CorruptBlocks:
    """Holds the blocks that failed, until they are made or loaded anew; the newest of very many."""

    codes = ("CORRUPT_BLOCK",)

    def __init__(self) -> None:
        self._failed: dict[int, None] = {}
        self._is_full = False

    @property
    def is_sure(self) -> bool:
        """Whether no failed block was forgotten."""
        return not self._is_full

    def look(self, rows: Rows) -> list[Found]:
        """Blocks that fail, one finding a tier; and reads of such, another."""
        failures = rows.of(Kind.SWAP_IN_FAILED, Kind.ERROR)
        failures = failures[rows.numbers_at("reason", failures) == Reason.CHECKSUM]
        src, tier = rows.numbers_at("src", failures), rows.numbers("tier")[failures]
        found = found_at(self.codes[0], rows, failures, np.where(src != ABSENT, src, tier))
        if not self._failed and not len(failures):
            return found
        return [*found, *self._served(rows, set(failures.tolist()))]

    def _served(self, rows: Rows, failures: set[int]) -> list[Found]:
        """Reads of blocks that failed, row by row: there are few such blocks."""
        blocks = rows.ids("block")
        own = np.concatenate([np.fromiter(self._failed, dtype=np.uint64), blocks[sorted(failures)]])
        reads, fresh = rows.of(Kind.ATTENTION_READ), set(rows.of(*_FRESH).tolist())
        about = np.flatnonzero(np.isin(blocks, own))
        read_rows, served = set(reads.tolist()), []
        for place in about.tolist():
            block = int(blocks[place])
            if place in failures:
                self._failed[block] = None
            elif place in fresh:
                self._failed.pop(block, None)
            elif place in read_rows and block in self._failed:
                served.append(place)
        self._bound()
        bad = np.array(served, dtype=np.int64)
        return found_at(self.codes[0], rows, bad, rows.numbers("tier")[bad], SERVED)

    def _bound(self) -> None:
        """Forget the oldest of too many."""
        while len(self._failed) > _MOST:
            del self._failed[next(iter(self._failed))]
            self._is_full = True
