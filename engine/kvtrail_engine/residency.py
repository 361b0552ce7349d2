"""Taking and leaving copies, with the event that each change is told by."""

from kvtrail_schema.absent import NO_U64
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import EventId, OpId, RequestId, Slot
from kvtrail_schema.reasons import EvictReason

from kvtrail_engine.context import Context
from kvtrail_engine.history import Loss
from kvtrail_engine.tiers.pool import Copy, CopyState


class Residency:
    """Runs on the engine's thread; never blocks."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def pin(self, copy: Copy, req: RequestId | None = None) -> None:
        """Reference a copy: it will not be evicted. Told at once, or by `tell_pinned` once there is something to read."""
        refs = self._context.pools[copy.tier].acquire(copy)
        if copy.state is CopyState.READY:
            self.tell_pinned(copy, refs, req)

    def tell_pinned(self, copy: Copy, refs: int, req: RequestId | None = None) -> None:
        """Emit a reference that was taken before."""
        who = NO_U64 if req is None else req
        self._context.emit.block_pinned(copy.block.id, copy.tier, copy.slot, refs, who, copy.block.ns)

    def unpin(self, copy: Copy, now_ns: int, req: RequestId | None = None) -> None:
        """Give a reference up."""
        refs = self._context.pools[copy.tier].release(copy, now_ns)
        if copy.state is CopyState.LOADING:
            return
        who = NO_U64 if req is None else req
        self._context.emit.block_unpinned(copy.block.id, copy.tier, copy.slot, refs, who, copy.block.ns, t_ns=now_ns)

    def evict(self, copy: Copy, reason: EvictReason, cause: EventId | None = None, op: OpId | None = None) -> None:
        """End a copy that nobody uses and free its slot."""
        context, now_ns = self._context, self._context.clock.now_ns()
        event = context.ids.event()
        context.pools[copy.tier].remove(copy)
        context.history.note(copy.block.id, Loss(copy.tier, event))
        context.emit.evicted(
            copy.block.id,
            copy.tier,
            copy.slot,
            reason,
            id=event,
            cause=NO_U64 if cause is None else cause,
            bytes=context.settings.block_bytes,
            duration_ns=max(now_ns - copy.used_ns, 0),
            op=NO_U64 if op is None else op,
            ns=copy.block.ns,
            t_ns=now_ns,
        )

    def keep_gpu_room(self) -> None:
        """Evict idle gpu copies until as many slots are free as the settings want, or none is left."""
        gpu, wanted = self._context.gpu, self._context.settings.gpu_low_slots
        while gpu.free < wanted and (victim := gpu.victim()) is not None:
            self.evict(victim, EvictReason.CAPACITY)

    def take_slot(self, tier: Tier, cause: EventId | None = None) -> Slot | None:
        """A slot of a tier, evicting the least recently used copy if need be; None where everything is in use."""
        pool = self._context.pools[tier]
        if pool.free == 0:
            victim = pool.victim()
            if victim is None:
                return None
            self.evict(victim, EvictReason.CAPACITY, cause)
        return pool.take()
