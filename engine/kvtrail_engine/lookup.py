"""The prefix of a prompt that some tier still has."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from kvtrail_schema.absent import NO_U64
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import EventId
from kvtrail_schema.reasons import BackpressureReason, MissReason, PrefillReason

from kvtrail_engine.context import Context
from kvtrail_engine.identity.mismatch import PREFILL_OF, problem_of
from kvtrail_engine.namespaces import Namespaces
from kvtrail_engine.sequence import Sequence
from kvtrail_engine.tiers.pool import Block, Copy, CopyState

_NO_EVENT = EventId(NO_U64)
_MISS_IN = {
    Tier.GPU: MissReason.GPU_POOL,
    Tier.HOST: MissReason.HOST_POOL,
    Tier.NVME: MissReason.DISK_INDEX,
    Tier.REMOTE: MissReason.REMOTE_INDEX,
}
_MISS_OF = {
    PrefillReason.CHECKSUM: MissReason.CHECKSUM,
    PrefillReason.VERSION: MissReason.VERSION,
    PrefillReason.PERMISSION: MissReason.PERMISSION,
    PrefillReason.EXPIRED: MissReason.EXPIRED,
}
"""Loads that failed because of what lay there, and not because it could not be read."""


@dataclass(frozen=True, slots=True)
class Found:
    """The longest prefix, one copy a block: of several, the one in the fastest tier."""

    began_ns: int
    ended_ns: int
    copies: tuple[Copy, ...]

    def blocks_by_tier(self) -> Counter[Tier]:
        """How many blocks each tier serves."""
        return Counter(copy.tier for copy in self.copies)


class Lookup:
    """Runs on the engine's thread: a few dictionary reads a block."""

    def __init__(self, context: Context, namespaces: Namespaces) -> None:
        self._context = context
        self._namespaces = namespaces
        self.stall: Callable[[Sequence], None] | None = None
        """Runs within each lookup: a drill's slow index. Replaced on the engine's thread."""

    def find(self, sequence: Sequence) -> Found:
        """The longest prefix that is there. Changes nothing, tells nothing."""
        began_ns = self._context.clock.now_ns()
        if self.stall is not None:
            self.stall(sequence)
        copies: list[Copy] = []
        for index in range(sequence.reusable_blocks):
            copy = self._fastest(sequence, index)
            if copy is None:
                break
            copies.append(copy)
        return Found(began_ns, self._context.clock.now_ns(), tuple(copies))

    def tell(self, sequence: Sequence, found: Found) -> None:
        """Emit the lookup with its hits and misses, and note why missing blocks are computed."""
        emit, req, t_ns = self._context.emit, sequence.handle.req, found.ended_ns
        size = self._context.settings.block_tokens
        served = found.blocks_by_tier()
        emit.lookup_finished(
            req,
            found.ended_ns - found.began_ns,
            sequence.prompt_tokens,
            tokens_gpu=served[Tier.GPU] * size,
            tokens_host=served[Tier.HOST] * size,
            tokens_nvme=served[Tier.NVME] * size,
            tokens_remote=served[Tier.REMOTE] * size if Tier.REMOTE in self._context.pools else NO_U64,
            t_ns=t_ns,
        )
        for copy in found.copies:
            emit.prefix_hit(req, copy.block.id, copy.tier, size, copy.block.ns, t_ns)
        for index in range(len(found.copies), sequence.reusable_blocks):
            self._tell_missing(sequence, index, t_ns)

    def _tell_missing(self, sequence: Sequence, index: int, t_ns: int) -> None:
        """One block that must be computed: never stored, lost, not to be trusted, or there behind a broken prefix."""
        block = sequence.blocks[index]
        if self._fastest(sequence, index) is not None:
            sequence.reasons[index] = PrefillReason.TRUNCATED
            return
        closed = self._closed_tier(block)
        if closed is not None:
            sequence.reasons[index] = PrefillReason.CHOSEN
            self._context.emit.prefix_miss(
                sequence.handle.req, block.id, _MISS_IN[closed], block.tokens, NO_U64, block.ns, t_ns
            )
            return
        if self._is_out_of_reach(sequence, index):
            self._tell_out_of_reach(sequence, index, t_ns)
            return
        reason, why, cause = self._why_missing(block)
        if why is not None:
            sequence.reasons[index] = why
        if (failure := sequence.failures.get(index)) is not None:
            sequence.reasons[index] = failure
            reason = _MISS_OF.get(failure, reason)
        self._context.emit.prefix_miss(sequence.handle.req, block.id, reason, block.tokens, cause, block.ns, t_ns)

    def _closed_tier(self, block: Block) -> Tier | None:
        """The tier that has a block and is disabled for now; None where no tier is."""
        for tier in self._context.degraded.closed & self._context.pools.keys():
            copy = self._context.pools[tier].find(block.id)
            if copy is not None and copy.state is CopyState.READY:
                return tier
        return None

    def _why_missing(self, block: Block) -> tuple[MissReason, PrefillReason | None, EventId]:
        """Why nobody may read a block, why it is computed then, and the event that took it away, if one did."""
        problem = self._problem(block)
        if problem is not None:
            return problem, PREFILL_OF.get(problem), _NO_EVENT
        loss = self._context.history.last(block.id)
        if loss is not None:
            reason = loss.reason or _MISS_IN[loss.tier]
            return reason, PREFILL_OF.get(reason, PrefillReason.EVICTED), loss.event
        loss = self._context.history.invalidated(block.ns, block.content)
        if loss is not None and loss.reason is not None:
            return loss.reason, PREFILL_OF.get(loss.reason, PrefillReason.EVICTED), loss.event
        foreign = self._namespaces.why_foreign(block)
        if foreign is not None:
            return foreign, PREFILL_OF[foreign], _NO_EVENT
        return MissReason.NEVER_STORED, None, _NO_EVENT

    def _problem(self, block: Block) -> MissReason | None:
        """What is wrong with the copies that are indexed under the block's id, the fastest first; None if nothing is."""
        now_ns = self._context.clock.now_ns()
        for pool in (self._context.gpu, *self._context.readable):
            copy = pool.find(block.id)
            problem = None if copy is None else problem_of(copy, block, now_ns)
            if problem is not None:
                return problem
        return None

    def is_out_of_reach(self, sequence: Sequence, found: Found) -> bool:
        """Whether the prefix ends where it does only because the remote, which has the next block, does not answer."""
        index = len(found.copies)
        return index < sequence.reusable_blocks and self._is_out_of_reach(sequence, index)

    def _is_out_of_reach(self, sequence: Sequence, index: int) -> bool:
        """Whether the remote has a block that no other tier gave, and is lost, or failed to give it to this request."""
        block, remote = sequence.blocks[index], self._context.pools.get(Tier.REMOTE)
        copy = None if remote is None else remote.find(block.id)
        if copy is None or copy.state is not CopyState.READY:
            return False
        if problem_of(copy, block, self._context.clock.now_ns()) is not None:
            return False
        is_lost = self._context.pressure.is_on(BackpressureReason.REMOTE_LOST)
        return is_lost or sequence.failures.get(index) is PrefillReason.LOAD_FAILED

    def _tell_out_of_reach(self, sequence: Sequence, index: int, t_ns: int) -> None:
        """A block that is computed because the remote is lost, or did not give it to this request."""
        block = sequence.blocks[index]
        sequence.reasons[index] = PrefillReason.LOAD_FAILED
        event = self._context.pressure.began_by(BackpressureReason.REMOTE_LOST)
        cause = NO_U64 if event is None else event
        req = sequence.handle.req
        self._context.emit.prefix_miss(req, block.id, MissReason.REMOTE_INDEX, block.tokens, cause, block.ns, t_ns)

    def _fastest(self, sequence: Sequence, index: int) -> Copy | None:
        """The copy in the fastest tier: on the gpu also one that is being loaded, below only readable ones.

        What the remote failed to give to this request once is not asked of it again.
        """
        block, now_ns = sequence.blocks[index], self._context.clock.now_ns()
        copy = self._context.gpu.find(block.id)
        if copy is not None:
            return copy if problem_of(copy, block, now_ns) is None else None
        for pool in self._context.readable:
            copy = pool.find(block.id)
            failed = pool.tier is Tier.REMOTE and index in sequence.failures
            is_ready = copy is not None and copy.state is CopyState.READY and not failed
            if copy is not None and is_ready and problem_of(copy, block, now_ns) is None:
                return copy
        return None
