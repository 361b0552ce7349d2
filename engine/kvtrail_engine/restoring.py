"""Loads into the gpu: what is being brought, who waits for it, and what follows from its end."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Protocol

from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, OpId
from kvtrail_schema.reasons import EvictReason, PrefillReason

from kvtrail_engine.context import Context
from kvtrail_engine.residency import Residency
from kvtrail_engine.sequence import Sequence
from kvtrail_engine.tiers.pool import Copy, CopyState
from kvtrail_engine.tiers.transfer import Estimates, Row, Transfer, TransferOutcome
from kvtrail_engine.transfers import Transfers

_WHY_COMPUTED = {
    TransferOutcome.CHECKSUM: PrefillReason.CHECKSUM,
    TransferOutcome.VERSION: PrefillReason.VERSION,
    TransferOutcome.PERMISSION: PrefillReason.PERMISSION,
    TransferOutcome.EXPIRED: PrefillReason.EXPIRED,
}
_UNASKED = frozenset({TransferOutcome.TIMEOUT, TransferOutcome.LOST})
"""The remote could not be asked: that says nothing about what lies there."""


class LoadListener(Protocol):
    """**Protocol:** hears what became of the loads that a sequence waits for; called on the engine's thread."""

    def loaded(self, sequence: Sequence, last: Transfer) -> None:
        """Everything that the sequence waited for is there; `last` ended last."""
        ...

    def lost(self, sequence: Sequence) -> None:
        """A load failed: the sequence must give up all that it holds and be prepared anew."""
        ...


class Restoring:
    """Runs on the engine's thread and never blocks. A copy is readable only after its load has ended well."""

    def __init__(self, context: Context, residency: Residency, transfers: Transfers, listener: LoadListener) -> None:
        self._context = context
        self._residency = residency
        self._transfers = transfers
        self._listener = listener
        self._waiters: defaultdict[OpId, list[Sequence]] = defaultdict(list)
        self._op_of: dict[BlockId, OpId] = {}

    def has_room(self, below: Counter[Tier]) -> bool:
        """Whether the queues take the ops for so many blocks of each tier."""
        size = self._context.settings.op_blocks
        return all(self._transfers.has_room(tier, -(-count // size)) for tier, count in below.items())

    def load(self, sequence: Sequence, sources: Iterable[tuple[int, Copy]], estimates: Estimates) -> None:
        """Queue the loads of these copies, pinned by the caller, into the slots that the sequence has for them."""
        rows: dict[Tier, list[Row]] = defaultdict(list)
        now_ns = self._context.clock.now_ns()
        for index, source in sources:
            target = source.replica(Tier.GPU, sequence.slots[index], now_ns)
            self._context.gpu.insert(target)
            self._residency.pin(target, sequence.handle.req)
            sequence.held[index] = target
            sequence.unread.append(target)
            loss = self._context.history.last(source.block.id)
            rows[source.tier].append(Row(source.block, source, target, None if loss is None else loss.event))
        sequence.loading_since_ns = now_ns
        for tier_rows in rows.values():
            self._queue(sequence, tier_rows, estimates, now_ns)

    def join(self, sequence: Sequence, copy: Copy) -> None:
        """Wait for the load of a copy that another request asked for; nothing to do where it is there."""
        if copy.state is CopyState.LOADING:
            self._wait(sequence, self._op_of[copy.block.id])

    def adopt(self, transfer: Transfer) -> None:
        """A prefetch into the gpu was queued: requests that need its blocks wait for it. Its end comes to `fetched`."""
        for row in transfer.rows:
            self._op_of[row.block.id] = transfer.op

    def fetched(self, transfer: Transfer) -> None:
        """A prefetch into the gpu has ended and was told."""
        self._ended(transfer)

    def is_awaited(self, copy: Copy) -> bool:
        """Whether some request waits for a copy to be loaded into the gpu."""
        op = self._op_of.get(copy.block.id) if copy.tier is Tier.GPU and copy.state is CopyState.LOADING else None
        return op is not None and bool(self._waiters.get(op))

    def abandon(self, sequence: Sequence) -> list[Transfer]:
        """The sequence waits no more; the ops that nobody waits for now, to be withdrawn once it has released what it holds."""
        unwanted: list[Transfer] = []
        for op in sequence.loading:
            self._waiters[op].remove(sequence)
            transfer = self._transfers.find(op)
            if not self._waiters[op] and transfer is not None:
                unwanted.append(transfer)
        sequence.loading.clear()
        return unwanted

    def _queue(self, sequence: Sequence, rows: list[Row], estimates: Estimates, now_ns: int) -> None:
        """Ops of at most `op_blocks`; the queues had room, and nobody else offers."""
        size = self._context.settings.op_blocks
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            transfer = self._transfers.queue(part, now_ns, self._ended, sequence.handle.req, estimates)
            assert transfer is not None, f"request {sequence.handle.req}: room in the queue was promised"
            for row in part:
                self._op_of[row.block.id] = transfer.op
            self._wait(sequence, transfer.op)

    def _wait(self, sequence: Sequence, op: OpId) -> None:
        """The sequence waits for an op, once."""
        transfer = self._transfers.find(op)
        if transfer is not None:
            transfer.stop.clear()  # called off just before? if its worker saw that, the load fails, and is queued anew
        if op not in sequence.loading:
            sequence.loading.add(op)
            self._waiters[op].append(sequence)

    def _ended(self, transfer: Transfer) -> None:
        """An op has ended and was told."""
        self._context.estimates.observe_load(transfer)
        for row in transfer.rows:
            del self._op_of[row.block.id]
        waiters = self._waiters.pop(transfer.op, [])
        if transfer.outcome is TransferOutcome.DONE:
            self._complete(transfer, waiters)
        else:
            self._fail(transfer, waiters)
        if transfer.prefetch is not None:
            self._context.prefetches.ended(transfer)

    def _complete(self, transfer: Transfer, waiters: list[Sequence]) -> None:
        """The copies are readable; whoever waited for nothing else goes on."""
        for row in transfer.rows:
            self._residency.ready(row.target, transfer.ended_ns)
            self._tell_holders(row.target, waiters)
            if transfer.prefetch is None and transfer.req is not None:
                self._context.prefetches.used(row.source, transfer.req)
            self._residency.unpin(row.source, transfer.ended_ns, transfer.req)
        for sequence in waiters:
            sequence.loading.discard(transfer.op)
            if sequence.handle.req == transfer.req:
                sequence.restored[transfer.src] = sequence.restored.get(transfer.src, 0) + len(transfer.rows)
            if not sequence.loading:
                self._listener.loaded(sequence, transfer)

    def _tell_holders(self, copy: Copy, waiters: list[Sequence]) -> None:
        """The references that were taken while there was nothing to read."""
        holders = [sequence for sequence in waiters if copy in sequence.held.values()]
        for refs, sequence in enumerate(holders, start=1):
            self._residency.tell_pinned(copy, refs, sequence.handle.req)

    def _fail(self, transfer: Transfer, waiters: list[Sequence]) -> None:
        """Nobody may read the copies: who waited starts anew, and a source that proved bad is dropped."""
        outcomes = {row.block.id: transfer.outcome_of(row) for row in transfer.rows}
        lost = {
            block: _WHY_COMPUTED.get(outcome, PrefillReason.LOAD_FAILED)
            for block, outcome in outcomes.items()
            if outcome is not TransferOutcome.CANCELLED
        }
        for sequence in waiters:
            sequence.loading.discard(transfer.op)
            sequence.failures.update({at: lost[block.id] for at, block in enumerate(sequence.blocks) if block.id in lost})
            for op in sequence.loading:
                self._waiters[op].remove(sequence)
            sequence.loading.clear()
            self._listener.lost(sequence)
        for row in transfer.rows:
            self._residency.drop(row.target)
            self._residency.unpin(row.source, transfer.ended_ns, transfer.req)
            if row.block.id in lost and transfer.outcome not in _UNASKED and row.source.refs == 0:
                is_expired = lost[row.block.id] is PrefillReason.EXPIRED
                self._residency.evict(row.source, EvictReason.EXPIRED if is_expired else EvictReason.ABORT)
