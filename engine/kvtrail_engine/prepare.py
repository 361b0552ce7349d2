"""Giving a waiting request its place: lookup, decision, room on the gpu, and the ops that bring its prefix."""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from kvtrail_schema.absent import NO_U8
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import Slot
from kvtrail_schema.reasons import PrefillReason

from kvtrail_engine.context import Context
from kvtrail_engine.keeping_cost import KeepingCost, Room
from kvtrail_engine.lookup import Found, Lookup
from kvtrail_engine.residency import Residency
from kvtrail_engine.restoring import Restoring
from kvtrail_engine.sequence import Phase, Sequence
from kvtrail_engine.settings import LostPolicy, RestorePolicy
from kvtrail_engine.tiers.pool import Copy, CopyState
from kvtrail_engine.tiers.transfer import Estimates


class Prepared(Enum):
    """What came of an attempt."""

    NO_ROOM = "no_room"
    """The gpu's blocks are in use; nothing has changed."""
    QUEUE_FULL = "queue_full"
    """A tier's queue is full; nothing has changed."""
    REFUSED = "refused"
    """Its prefix lies on a remote that is lost, and the settings reject such requests; nothing has changed."""
    DONE = "done"
    """The request has its place; it loads, or can be computed."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether stored blocks are loaded, and what that was decided on."""

    restores: bool
    below: Counter[Tier]
    tokens: int
    estimates: Estimates
    room: Room


class Preparer:
    """Runs on the engine's thread and never blocks. An attempt that is not `DONE` changes nothing and tells nothing."""

    def __init__(self, context: Context, residency: Residency, restoring: Restoring, lookup: Lookup) -> None:
        self._context = context
        self._residency = residency
        self._restoring = restoring
        self._lookup = lookup
        self._keeping = KeepingCost(context)

    def prepare(self, sequence: Sequence, ahead_tokens: int) -> Prepared:
        """Try to give a request its place; `ahead_tokens` are those that others compute before it."""
        found = self._lookup.find(sequence)
        if self._is_refused(sequence, found):
            return Prepared.REFUSED
        on_gpu = [copy for copy in found.copies if copy.tier is Tier.GPU]
        needed = sequence.total_blocks - len(on_gpu)
        idle_hits = sum(copy.refs == 0 and copy.state is CopyState.READY for copy in on_gpu)
        if self._context.gpu.available - idle_hits < needed:
            return Prepared.NO_ROOM
        decision = self._decide(found, ahead_tokens, self._keeping.room(needed - self._context.gpu.free, on_gpu))
        if decision.restores and not self._restoring.has_room(decision.below):
            return Prepared.QUEUE_FULL
        self._lookup.tell(sequence, found)
        self._tell(sequence, decision)
        self._take(sequence, found, decision)
        return Prepared.DONE

    def _is_refused(self, sequence: Sequence, found: Found) -> bool:
        """Whether the request's prefix is out of reach, and that is a reason to reject it."""
        remote = self._context.settings.remote
        rejects = remote is not None and remote.on_lost is LostPolicy.REJECT
        return rejects and self._lookup.is_out_of_reach(sequence, found)

    def _decide(self, found: Found, ahead_tokens: int, room: Room) -> Decision:
        """Restore or recompute, all of what lies below the gpu, by what both cost lately."""
        below = found.blocks_by_tier()
        del below[Tier.GPU]
        tokens = below.total() * self._context.settings.block_tokens
        costs = self._context.estimates
        estimates = Estimates(
            restore_ns=costs.restore_ns(below),
            recompute_ns=costs.recompute_ns(tokens, ahead_tokens),
            keep_ns=room.keep_ns,
        )
        return Decision(self._is_restore_cheaper(estimates), below, tokens, estimates, room)

    def _is_restore_cheaper(self, estimates: Estimates) -> bool:
        """The policy's answer."""
        policy = self._context.settings.restore_policy
        if self._context.degraded.recomputes:
            return False
        if policy is not RestorePolicy.AUTO:
            return policy is RestorePolicy.RESTORE
        return (estimates.restore_ns or 0) <= (estimates.recompute_ns or 0)

    def _tell(self, sequence: Sequence, decision: Decision) -> None:
        """Emit the decision where there was one to make."""
        if not decision.below:
            return
        sequence.decision = self._context.ids.event()
        emit = self._context.emit.restore_chosen if decision.restores else self._context.emit.recompute_chosen
        told = decision.estimates
        tier = next(iter(decision.below)) if len(decision.below) == 1 else NO_U8
        emit(
            sequence.handle.req,
            decision.tokens,
            told.restore_ns or 0,
            told.recompute_ns or 0,
            told.keep_ns or 0,
            tier,
            sequence.decision,
        )

    def _take(self, sequence: Sequence, found: Found, decision: Decision) -> None:
        """Reference what is on the gpu, take slots for the rest, and queue the loads."""
        for index, copy in enumerate(found.copies):
            if copy.tier is Tier.GPU:
                self._hold(sequence, index, copy)
        sources = list(self._sources(sequence, found, decision))
        for _, copy in sources:
            self._residency.pin(copy, sequence.handle.req)
        self._take_slots(sequence, decision.room)
        self._restoring.load(sequence, sources, decision.estimates)
        sequence.todo.extend(index for index in range(sequence.prompt_blocks) if index not in sequence.held)
        sequence.phase = Phase.LOADING if sequence.loading else Phase.PREFILL

    def _hold(self, sequence: Sequence, index: int, copy: Copy) -> None:
        """Reference a gpu copy, and wait for the op that brings it, if one still does."""
        self._residency.pin(copy, sequence.handle.req)
        sequence.held[index] = copy
        sequence.unread.append(copy)
        self._restoring.join(sequence, copy)

    def _sources(self, sequence: Sequence, found: Found, decision: Decision) -> Iterator[tuple[int, Copy]]:
        """The stored copies to load; where recompute was chosen, none, and their blocks say so."""
        for index, copy in enumerate(found.copies):
            if copy.tier is Tier.GPU:
                continue
            if decision.restores:
                yield index, copy
            else:
                sequence.reasons[index] = PrefillReason.CHOSEN

    def _take_slot(self, sequence: Sequence, turn: deque[Copy]) -> Slot | None:
        """One more gpu slot, on its tenant's account."""
        return self._residency.take_slot(Tier.GPU, sequence.decision, sequence.owner, turn=turn)

    def _take_slots(self, sequence: Sequence, room: Room) -> None:
        """A gpu slot for every block that has none yet. There is room: that was checked, and nothing ran in between."""
        turn = deque(room.victims)
        for index in range(sequence.total_blocks):
            held = sequence.held.get(index)
            slot = held.slot if held is not None else self._take_slot(sequence, turn)
            assert slot is not None, f"request {sequence.handle.req}: room on the gpu was promised"
            sequence.slots.append(slot)
