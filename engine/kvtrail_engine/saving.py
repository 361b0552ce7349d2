"""Writes to the slower tiers: new blocks through to host, and from there to nvme when host runs low.

A block is reclaimable only after its save is complete: its source stays referenced until then.
"""

from kvtrail_schema.absent import NO_U32
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import RequestId, Slot
from kvtrail_schema.reasons import BackpressureReason, EvictReason, SwapOutSkipReason

from kvtrail_engine.context import Context
from kvtrail_engine.residency import Residency
from kvtrail_engine.sequence import Sequence
from kvtrail_engine.tiers.pool import Copy, CopyState
from kvtrail_engine.tiers.transfer import Row, Transfer, TransferOutcome
from kvtrail_engine.transfers import Transfers


class Saving:
    """Runs on the engine's thread and never blocks: where a queue is full, it skips or comes again later."""

    def __init__(self, context: Context, residency: Residency, transfers: Transfers) -> None:
        self._context = context
        self._residency = residency
        self._transfers = transfers
        self._demoting = 0
        self._pressed: set[Tier] = set()

    def save_created(self, sequence: Sequence) -> None:
        """Write the blocks that a sequence has computed through to host; called once its first token is out.

        Not before: its own writes would stand beside its waits as if it had waited for them.
        """
        size = self._context.settings.op_blocks
        wanted = [copy for copy in sequence.created if self._is_wanted(copy, sequence.handle.req)]
        for start in range(0, len(wanted), size):
            self._save(wanted[start : start + size], sequence.handle.req)
        sequence.created.clear()
        self.demote()

    def demote(self, until_free_slots: int | None = None) -> None:
        """While host has fewer free slots than it should, move its least recently used blocks to nvme."""
        context, size = self._context, self._context.settings.op_blocks
        wanted = context.settings.host_low_slots if until_free_slots is None else until_free_slots
        while context.host.free + self._demoting < wanted:
            victims = context.host.victims(size)
            stored = [copy for copy in victims if context.nvme.find(copy.block.id) is not None]
            for copy in stored:
                self._residency.evict(copy, EvictReason.DEMOTION)
            moving = [copy for copy in victims if copy.refs == 0 and copy not in stored]
            if not victims or (moving and not self._demote(moving)):
                return

    def _is_wanted(self, copy: Copy, req: RequestId) -> bool:
        """Whether no slower tier has, or is getting, the block; if one has, the write is skipped and that is told."""
        context = self._context
        if context.host.find(copy.block.id) is None and context.nvme.find(copy.block.id) is None:
            return True
        self._skip(copy, SwapOutSkipReason.ALREADY_STORED, req)
        return False

    def _save(self, copies: list[Copy], req: RequestId) -> None:
        """One op from gpu to host, for those blocks that find a free slot there."""
        taken = [(copy, self._context.host.take()) for copy in copies]
        has_room = self._transfers.has_room(Tier.HOST, 1)
        self._press(Tier.HOST, BackpressureReason.HOST_QUEUE, is_full=not has_room)
        rows: list[Row] = []
        for copy, slot in taken:
            if slot is not None and has_room:
                rows.append(self._row(copy, Tier.HOST, slot, req))
                continue
            self._skip(copy, SwapOutSkipReason.BACKPRESSURE, req)
            if slot is not None:
                self._context.host.give_back(slot)
        if rows:
            self._transfers.queue(rows, self._context.clock.now_ns(), self._saved, req)

    def _demote(self, copies: list[Copy]) -> bool:
        """One op from host to nvme; False where the queue is full or nvme has no room."""
        has_room = self._transfers.has_room(Tier.NVME, 1)
        self._press(Tier.NVME, BackpressureReason.DISK_QUEUE, is_full=not has_room)
        if not has_room:
            return False
        rows: list[Row] = []
        for copy in copies:
            slot = self._residency.take_slot(Tier.NVME)
            if slot is not None:
                rows.append(self._row(copy, Tier.NVME, slot, None))
        if not rows:
            return False
        self._demoting += len(rows)
        self._transfers.queue(rows, self._context.clock.now_ns(), self._demoted)
        return True

    def _row(self, source: Copy, tier: Tier, slot: Slot, req: RequestId | None) -> Row:
        """Reference the source, and index the place to be written, unreadable as yet."""
        now_ns = self._context.clock.now_ns()
        target = Copy(source.block, tier, slot, CopyState.LOADING, now_ns)
        self._context.pools[tier].insert(target)
        self._residency.pin(source, req)
        return Row(source.block, source, target)

    def _saved(self, transfer: Transfer) -> None:
        """A write to host has ended."""
        self._settle(transfer)
        self.demote()

    def _demoted(self, transfer: Transfer) -> None:
        """A write to nvme has ended: leave host, unless somebody came to use the copy meanwhile."""
        self._demoting -= len(transfer.rows)
        self._settle(transfer)
        for row in transfer.rows:
            if transfer.outcome is TransferOutcome.DONE and row.source.refs == 0:
                self._residency.evict(row.source, EvictReason.DEMOTION, op=transfer.op)
        if transfer.outcome is TransferOutcome.DONE:
            self.demote()

    def _settle(self, transfer: Transfer) -> None:
        """The written copies are readable, or forgotten; the sources are given up."""
        for row in transfer.rows:
            pool = self._context.pools[row.target.tier]
            if transfer.outcome is TransferOutcome.DONE:
                pool.ready(row.target, transfer.ended_ns)
            else:
                pool.remove(row.target)
            self._residency.unpin(row.source, transfer.ended_ns, transfer.req)

    def _skip(self, copy: Copy, reason: SwapOutSkipReason, req: RequestId) -> None:
        """Tell of a write that is not made."""
        context = self._context
        size_bytes = context.settings.block_bytes
        op = context.ids.op()
        context.emit.swap_out_skipped(op, Tier.GPU, Tier.HOST, reason, copy.block.id, size_bytes, req, copy.block.ns)

    def _press(self, tier: Tier, reason: BackpressureReason, *, is_full: bool) -> None:
        """Tell when a queue begins and ceases to push back."""
        if is_full == (tier in self._pressed):
            return
        emit = self._context.emit.backpressure_on if is_full else self._context.emit.backpressure_off
        emit(tier, reason, NO_U32, self._context.ids.event())
        self._pressed ^= {tier}
