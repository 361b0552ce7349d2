"""Taking and leaving copies, with the event that each change is told by."""

from collections import deque

from kvtrail_schema.absent import NO_U64
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import EventId, OpId, RequestId, Slot
from kvtrail_schema.reasons import EvictReason, MissReason

from kvtrail_engine.context import Context
from kvtrail_engine.history import Loss
from kvtrail_engine.identity.mismatch import MISS_OF
from kvtrail_engine.tiers.pool import Copy, CopyState, Doom, TierPool

_ERASED = frozenset({Tier.NVME, Tier.REMOTE})
"""What lies there outlives its slot's release, so an invalidated copy is erased before it is told to be gone."""
_MISS_AFTER = {EvictReason.EXPIRED: MissReason.EXPIRED}
"""Why a lookup misses what was evicted, where the reason says more than the tier."""


class Residency:
    """Runs on the engine's thread; never blocks."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.condemned: set[Copy] = set()
        """Invalidated copies that are still in use or on their way, or wait to be erased."""

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
        """Give a reference up; an invalidated copy goes with the last one."""
        refs = self._context.pools[copy.tier].release(copy, now_ns)
        if copy.state is CopyState.LOADING:
            return
        who = NO_U64 if req is None else req
        self._context.emit.block_unpinned(copy.block.id, copy.tier, copy.slot, refs, who, copy.block.ns, t_ns=now_ns)
        self._settle_doomed(copy)

    def ready(self, copy: Copy, now_ns: int) -> None:
        """A copy's data is there."""
        self._context.pools[copy.tier].ready(copy, now_ns)
        self._settle_doomed(copy)

    def drop(self, copy: Copy) -> None:
        """A copy that never became readable is given up, and told by the end of its op alone."""
        self._context.pools[copy.tier].remove(copy)
        self.condemned.discard(copy)

    def evict(self, copy: Copy, reason: EvictReason, cause: EventId | None = None, op: OpId | None = None) -> None:
        """End a copy that nobody uses and free its slot; nothing to do for one that falls to an invalidation anyway."""
        if copy.doom is not None:
            return
        context, now_ns = self._context, self._context.clock.now_ns()
        event = context.ids.event()
        context.prefetches.left(copy)
        context.pools[copy.tier].remove(copy)
        context.history.note(copy.block.id, Loss(copy.tier, event, _MISS_AFTER.get(reason)))
        context.emit.evicted(
            copy.block.id,
            copy.tier,
            copy.slot,
            reason,
            id=event,
            cause=NO_U64 if cause is None else cause,
            bytes=context.settings.block_bytes,
            priority=copy.terms.priority,
            duration_ns=max(now_ns - copy.used_ns, 0),
            op=NO_U64 if op is None else op,
            ns=copy.block.ns,
            t_ns=now_ns,
        )

    def invalidate(self, copy: Copy, doom: Doom) -> None:
        """From here on nobody finds the copy. It is told to be gone once nobody uses it, and nothing of it is left."""
        self._context.pools[copy.tier].condemn(copy, doom)
        loss = Loss(copy.tier, doom.event, MISS_OF[doom.reason])
        self._context.history.note_invalidated(copy.block.ns, copy.block.content, loss)
        self.condemned.add(copy)
        self._context.prefetches.left(copy)  # may let go of it, with its last reference
        if copy in self.condemned:
            self._settle_doomed(copy)

    def erased(self, copy: Copy) -> None:
        """An invalidated copy is gone: tell it, and free its slot."""
        self.condemned.discard(copy)
        doom = copy.doom
        assert doom is not None, f"block {copy.block.id:016x} in {copy.tier.name} was not invalidated"
        self._context.pools[copy.tier].give_back(copy.slot)
        self._context.emit.invalidated(copy.block.id, copy.tier, copy.slot, doom.reason, doom.event, copy.block.ns)

    def keep_gpu_room(self) -> None:
        """Evict idle gpu copies until as many slots are free as the settings want, or none is left."""
        gpu, wanted = self._context.gpu, self._context.settings.gpu_low_slots
        while gpu.free < wanted and (victim := gpu.victim()) is not None:
            self.evict(victim, EvictReason.CAPACITY)

    def sweep(self, now_ns: int) -> None:
        """Let priorities lapse, and end the idle copies that have expired."""
        for pool in self._context.pools.values():
            for copy in pool.advance(now_ns):
                self.evict(copy, EvictReason.EXPIRED)

    def take_slot(
        self, tier: Tier, cause: EventId | None = None, owner: str = "", turn: deque[Copy] | None = None
    ) -> Slot | None:
        """A slot of a tier for a tenant, evicting if need be: of the tenant's own copies where it is at its quota, else the
        first that is idle of those whose `turn` the caller says it is, else the one that the policy names. None where all
        that may go is in use.
        """
        pool, reason = self._context.pools[tier], EvictReason.CAPACITY
        if self.room_in_quota(tier, owner) < 1:
            victim, reason = pool.victim(owner), EvictReason.QUOTA
        elif pool.free == 0:
            victim = self._next(pool, turn)
        else:
            return pool.take(owner)
        if victim is None:
            return None
        self.evict(victim, reason, cause)
        return pool.take(owner)

    def _next(self, pool: TierPool, turn: deque[Copy] | None) -> Copy | None:
        """Who leaves a full tier."""
        while turn:
            copy = turn.popleft()
            if copy.refs == 0 and copy.doom is None and pool.find(copy.block.id) is copy:
                return copy
        return pool.victim()

    def take_free_slot(self, tier: Tier, owner: str) -> Slot | None:
        """A slot of a tier for a tenant that costs nobody else anything: free, or in place of one of its own at its quota."""
        has_room = self.room_in_quota(tier, owner) >= 1
        return self._context.pools[tier].take(owner) if has_room else self.take_slot(tier, owner=owner)

    def room_in_quota(self, tier: Tier, owner: str) -> int:
        """Slots that a tenant may take before it is at its quota; all slots of the tier where it has none."""
        pool = self._context.pools[tier]
        quota_slots = self._context.settings.quota_slots(tier, owner)
        return pool.slots if quota_slots is None else quota_slots - pool.held(owner)

    def _settle_doomed(self, copy: Copy) -> None:
        """Let go of an invalidated copy that nobody uses any more; where it lies in a file or abroad, it is erased first."""
        is_unused = copy.refs == 0 and copy.state is CopyState.READY
        if copy.doom is not None and is_unused and copy.tier not in _ERASED:
            self.erased(copy)
