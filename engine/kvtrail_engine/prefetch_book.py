"""What became of every block that was fetched ahead: each ends in exactly one of used, wasted and cancelled."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from kvtrail_schema.absent import NO_I64, NO_U64
from kvtrail_schema.emitter import Emitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import PrefetchId, RequestId
from kvtrail_schema.reasons import PrefetchCancelReason, PrefetchWasteReason

from kvtrail_engine.clock import Clock
from kvtrail_engine.tiers.block import Copy
from kvtrail_engine.tiers.transfer import Transfer, TransferOutcome

WASTED_AFTER: Final = {
    PrefetchCancelReason.REQUEST_GONE: PrefetchWasteReason.REQUEST_GONE,
    PrefetchCancelReason.SUPERSEDED: PrefetchWasteReason.SUPERSEDED,
    PrefetchCancelReason.DEADLINE: PrefetchWasteReason.TOO_LATE,
    PrefetchCancelReason.DEGRADED: PrefetchWasteReason.NEVER_NEEDED,
    PrefetchCancelReason.SHUTDOWN: PrefetchWasteReason.NEVER_NEEDED,
}
"""What a block is that can no longer be called off when it should be, because its read has begun."""


class PrefetchStatistics(NamedTuple):
    """Prefetches so far, in blocks."""

    issued: int = 0
    used: int = 0
    wasted: int = 0
    cancelled: int = 0
    open: int = 0


@dataclass(slots=True, eq=False)
class Issued:
    """One block of one prefetch that has not ended yet."""

    prefetch: PrefetchId
    target: Copy
    transfer: Transfer
    req: RequestId | None
    session: str | None
    deadline_ns: int
    upstream: "Issued | None" = None
    """The prefetch that brought the copy which this one reads."""
    is_ready: bool = False
    is_late: bool = False
    is_held: bool = False
    """Its copy is referenced on the prefetch's behalf, so that it stays."""
    doomed: PrefetchWasteReason | None = None
    """It will be wasted for this reason, once its read is over."""


def _nothing(entry: Issued) -> None:
    """What follows from the end of a block where nobody fetches ahead."""


class PrefetchBook:
    """Runs on the engine's thread; emits every `prefetch_*` event but the skips."""

    def __init__(self, emit: Emitter, clock: Clock, block_bytes: int) -> None:
        self._emit = emit
        self._clock = clock
        self._block_bytes = block_bytes
        self._open: dict[Copy, Issued] = {}
        self._cancelling: dict[PrefetchId, PrefetchCancelReason] = {}
        self.on_end: Callable[[Issued], None] = _nothing
        """Called with each block that has just ended, after that was told."""
        self._issued = self._used = self._wasted = self._cancelled = 0

    @property
    def open_bytes(self) -> int:
        """What is fetched, or on its way, and neither used nor given up yet."""
        return len(self._open) * self._block_bytes

    def pending(self, tier: Tier) -> int:
        """Blocks of prefetches into a tier that have not ended."""
        return sum(copy.tier is tier for copy in self._open)

    def entries(self) -> list[Issued]:
        """Every block that has not ended, in order of issue."""
        return list(self._open.values())

    def statistics(self) -> PrefetchStatistics:
        """The sums: issued = used + wasted + cancelled + open, always."""
        return PrefetchStatistics(self._issued, self._used, self._wasted, self._cancelled, len(self._open))

    def issue(self, entries: Iterable[Issued], now_ns: int) -> None:
        """These blocks are fetched from now on."""
        for entry in entries:
            row = entry.transfer
            self._open[entry.target] = entry
            self._issued += 1
            block = entry.target.block
            self._emit.prefetch_issued(
                entry.prefetch,
                block.id,
                row.src,
                row.dst,
                RequestId(NO_U64) if entry.req is None else entry.req,
                entry.deadline_ns or NO_I64,
                self._block_bytes,
                row.depth,
                ns=block.ns,
                t_ns=now_ns,
            )

    def find(self, copy: Copy) -> Issued | None:
        """The open prefetch that brings, or brought, a copy."""
        return self._open.get(copy)

    def cancelling(self, transfer: Transfer, reason: PrefetchCancelReason) -> None:
        """An op is about to be withdrawn: should it still be possible, that is why; should it not, its blocks are wasted."""
        for row in transfer.rows:
            entry = self._open.get(row.target)
            if entry is not None:
                self._cancelling[entry.prefetch] = reason
                entry.doomed = entry.doomed or WASTED_AFTER[reason]

    def ended(self, transfer: Transfer) -> None:
        """The op of a prefetch has ended and was told."""
        now_ns = self._clock.now_ns()
        for row in transfer.rows:
            entry = self._open.get(row.target)
            if entry is None:
                continue
            outcome = transfer.outcome_of(row)
            if transfer.outcome is TransferOutcome.DONE:
                self._complete(entry, transfer.ended_ns, now_ns)
            elif outcome is TransferOutcome.CANCELLED:
                self._cancel(entry)
            else:
                self._waste(entry, PrefetchWasteReason.MISSING)
        if transfer.prefetch is not None:
            self._cancelling.pop(transfer.prefetch, None)

    def used(self, copy: Copy, req: RequestId) -> None:
        """A request read a copy; O(1) where nobody fetched it ahead."""
        entry = self._open.get(copy)
        while entry is not None:
            block = entry.target.block
            if self._open.pop(entry.target, None) is not None:
                self._used += 1
                self._emit.prefetch_used(entry.prefetch, block.id, req, block.ns)
                self.on_end(entry)
            entry = entry.upstream

    def left(self, copy: Copy) -> None:
        """A copy has left its place, or will as soon as its read is over."""
        entry = self._open.get(copy)
        if entry is not None:
            self.give_up(entry, PrefetchWasteReason.EVICTED_BEFORE_USE)

    def give_up(self, entry: Issued, reason: PrefetchWasteReason) -> None:
        """Nobody will use a block: it is wasted now, or when its read is over."""
        if entry.is_ready:
            self._waste(entry, reason)
        else:
            entry.doomed = entry.doomed or reason

    def miss_deadline(self, entry: Issued, now_ns: int) -> None:
        """A block is not there when it should be; told once."""
        if not entry.is_late:
            entry.is_late = True
            block = entry.target.block
            self._emit.prefetch_deadline_missed(entry.prefetch, block.id, block.ns, now_ns)

    def _complete(self, entry: Issued, ended_ns: int, now_ns: int) -> None:
        """A block is there; perhaps too late, perhaps for nobody."""
        block = entry.target.block
        entry.is_ready = True
        self._emit.prefetch_completed(entry.prefetch, block.id, block.ns, ended_ns)
        self._emit.prefetch_ready(entry.prefetch, block.id, block.ns, now_ns)
        if entry.deadline_ns and ended_ns > entry.deadline_ns:
            self.miss_deadline(entry, now_ns)
        if entry.doomed is not None:
            self._waste(entry, entry.doomed)

    def _cancel(self, entry: Issued) -> None:
        """A block was called off before it was read."""
        reason = self._cancelling.get(entry.prefetch, PrefetchCancelReason.SUPERSEDED)
        block = entry.target.block
        del self._open[entry.target]
        self._cancelled += 1
        self._emit.prefetch_cancelled(entry.prefetch, block.id, reason, block.ns)
        self.on_end(entry)

    def _waste(self, entry: Issued, reason: PrefetchWasteReason) -> None:
        """A block was of no use."""
        block = entry.target.block
        entry.doomed = reason
        del self._open[entry.target]
        self._wasted += 1
        self._emit.prefetch_wasted(entry.prefetch, block.id, reason, block.ns)
        self.on_end(entry)
