"""Writes to the slower tiers: new blocks through to host, and from there down to nvme and remote where room runs low.

A block is reclaimable only after its save is complete: its source stays referenced until then.
"""

from collections import Counter

from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import RequestId, Slot
from kvtrail_schema.reasons import EvictReason, SwapOutSkipReason

from kvtrail_engine.backpressure import QUEUE_FULL
from kvtrail_engine.context import Context
from kvtrail_engine.residency import Residency
from kvtrail_engine.sequence import Sequence
from kvtrail_engine.tiers.pool import Copy, TierPool
from kvtrail_engine.tiers.transfer import Row, Transfer, TransferOutcome
from kvtrail_engine.transfers import Transfers


class Saving:
    """Runs on the engine's thread and never blocks: where a queue is full, it skips or comes again later."""

    def __init__(self, context: Context, residency: Residency, transfers: Transfers) -> None:
        self._context = context
        self._residency = residency
        self._transfers = transfers
        self._demoting: Counter[Tier] = Counter()

    def save_created(self, sequence: Sequence) -> None:
        """Write the blocks that a sequence has computed through to host; called once its first token is out.

        Not before: its own writes would stand beside its waits as if it had waited for them.
        """
        is_off = not self._context.host.slots or Tier.HOST in self._context.degraded.closed
        if is_off or sequence.cancel_asked is not None:
            sequence.created.clear()
            return
        size = self._context.settings.op_blocks
        wanted = [copy for copy in sequence.created if self._is_wanted(copy, sequence.handle.req)]
        for start in range(0, len(wanted), size):
            self._save(wanted[start : start + size], sequence.handle.req)
        sequence.created.clear()
        self.demote()

    def demote(self) -> None:
        """Where host or nvme has fewer free slots than it should, move its least recently used blocks a tier down."""
        settings = self._context.settings
        self.demote_from(Tier.HOST, settings.host_low_slots)
        self.demote_from(Tier.NVME, settings.nvme_low_slots)

    def demote_from(self, tier: Tier, until_free_slots: int) -> None:
        """Move a tier's least recently used blocks to the next tier that is on, until so many slots are free or will be."""
        target = self._below(tier)
        if target is None or tier in self._context.degraded.closed:
            return
        target.offer_again(self._context.clock.now_ns())
        pool, size = self._context.pools[tier], self._context.settings.op_blocks
        while pool.free + self._demoting[tier] < until_free_slots:
            victims = pool.victims(size)
            stored = [copy for copy in victims if target.find(copy.block.id) is not None]
            for copy in stored:
                self._residency.evict(copy, EvictReason.DEMOTION)
            moving = [copy for copy in victims if copy.refs == 0 and copy not in stored]
            if not victims or (moving and not self._demote(moving, target.tier)):
                return

    def _below(self, tier: Tier) -> TierPool | None:
        """The next slower tier that has slots and can be reached."""
        return next((pool for pool in self._context.readable if pool.tier > tier and pool.slots), None)

    def _is_wanted(self, copy: Copy, req: RequestId) -> bool:
        """Whether no slower tier has, or is getting, the block; if one has, the write is skipped and that is told."""
        if copy.doom is not None:
            return False
        if all(pool.find(copy.block.id) is None for pool in self._context.readable):
            return True
        self._skip(copy, SwapOutSkipReason.ALREADY_STORED, req)
        return False

    def _save(self, copies: list[Copy], req: RequestId) -> None:
        """One op from gpu to host, for those blocks that find a free slot there."""
        has_room = self._has_room(Tier.HOST)
        taken = [(copy, self._take_host_slot(copy) if has_room else None) for copy in copies]
        rows: list[Row] = []
        for copy, slot in taken:
            if slot is not None:
                rows.append(self._row(copy, Tier.HOST, slot, req))
            else:
                self._skip(copy, self._why_no_room(copy), req)
        if rows:
            self._transfers.queue(rows, self._context.clock.now_ns(), self._saved, req)

    def _take_host_slot(self, copy: Copy) -> Slot | None:
        """A slot on host; where nothing lies below it that blocks could move to, the oldest block makes room."""
        is_last = self._below(Tier.HOST) is None
        owner = copy.block.owner
        return (
            self._residency.take_slot(Tier.HOST, owner=owner) if is_last else self._residency.take_free_slot(Tier.HOST, owner)
        )

    def _why_no_room(self, copy: Copy) -> SwapOutSkipReason:
        """Whether it is its tenant's quota that leaves no room for a copy on host."""
        is_at_quota = self._residency.room_in_quota(Tier.HOST, copy.block.owner) < 1
        return SwapOutSkipReason.QUOTA if is_at_quota else SwapOutSkipReason.BACKPRESSURE

    def _has_room(self, tier: Tier) -> bool:
        """Whether a tier's queue takes a write; one that pushed back takes none until it is half empty."""
        pressure, reason = self._context.pressure, QUEUE_FULL[tier]
        if not self._transfers.has_room(tier, 1):
            pressure.begin(reason)
        return not pressure.is_on(reason)

    def _demote(self, copies: list[Copy], tier: Tier) -> bool:
        """One op to a slower tier; False where its queue is full or it has no room."""
        if not self._has_room(tier):
            return False
        rows: list[Row] = []
        for copy in copies:
            slot = self._residency.take_slot(tier, owner=copy.block.owner)
            if slot is not None:
                rows.append(self._row(copy, tier, slot, None))
        if not rows:
            return False
        self._demoting[copies[0].tier] += len(rows)
        self._transfers.queue(rows, self._context.clock.now_ns(), self._demoted)
        return True

    def _row(self, source: Copy, tier: Tier, slot: Slot, req: RequestId | None) -> Row:
        """Reference the source, and index the place to be written, unreadable as yet."""
        now_ns = self._context.clock.now_ns()
        target = source.replica(tier, slot, now_ns)
        self._context.pools[tier].insert(target)
        self._residency.pin(source, req)
        return Row(source.block, source, target)

    def _saved(self, transfer: Transfer) -> None:
        """A write to host has ended."""
        self._settle(transfer)
        self.demote()

    def _demoted(self, transfer: Transfer) -> None:
        """A write from a tier to a slower one has ended: leave the faster, unless somebody came to use the copy meanwhile."""
        self._demoting[transfer.src] -= len(transfer.rows)
        self._settle(transfer)
        for row in transfer.rows:
            if row.source.refs:
                continue
            if transfer.outcome is TransferOutcome.DONE:
                self._residency.evict(row.source, EvictReason.DEMOTION, op=transfer.op)
            elif row.block.id in transfer.faults:
                self._residency.evict(row.source, EvictReason.ABORT, op=transfer.op)
        if transfer.outcome is TransferOutcome.DONE or self._has_shrunk(transfer):
            self.demote()

    def _has_shrunk(self, transfer: Transfer) -> bool:
        """Whether the disk was full, so that nvme gets by for now with the places that it has filled before."""
        if transfer.outcome is not TransferOutcome.NO_SPACE or transfer.dst is not Tier.NVME:
            return False
        until_ns = transfer.ended_ns + self._context.settings.nvme_files.no_space_retry_ns
        return self._context.nvme.hold_back(until_ns) > 0

    def _settle(self, transfer: Transfer) -> None:
        """The written copies are readable, or forgotten; the sources are given up."""
        for row in transfer.rows:
            if transfer.outcome is TransferOutcome.DONE:
                self._residency.ready(row.target, transfer.ended_ns)
            else:
                self._residency.drop(row.target)
            self._residency.unpin(row.source, transfer.ended_ns, transfer.req)

    def _skip(self, copy: Copy, reason: SwapOutSkipReason, req: RequestId) -> None:
        """Tell of a write that is not made."""
        context = self._context
        size_bytes = context.settings.block_bytes
        op = context.ids.op()
        context.emit.swap_out_skipped(op, Tier.GPU, Tier.HOST, reason, copy.block.id, size_bytes, req, copy.block.ns)
