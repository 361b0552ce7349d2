"""One tier's slots and the copies in them: who is where, who is in use, and whose turn it is to go.

Everything here runs on the engine's thread; no lock is needed.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, NamespaceId, Slot


class CopyState(Enum):
    """Whether a copy's data is there."""

    LOADING = "loading"
    """An op is bringing it; nobody may read."""
    READY = "ready"
    """Readable."""


@dataclass(frozen=True, slots=True)
class Block:
    """What a block is, wherever its copies lie: identity, namespace, prefix, token range."""

    id: BlockId
    ns: NamespaceId
    parent: BlockId | None
    token_start: int
    tokens: int


@dataclass(slots=True, eq=False)
class Copy:
    """One physical place of a block."""

    block: Block
    tier: Tier
    slot: Slot
    state: CopyState
    used_ns: int
    refs: int = 0


class PoolStatistics(NamedTuple):
    """What a pool holds at one moment."""

    slots: int
    """All slots of the tier."""
    free: int
    """Slots with nothing in them."""
    copies: int
    """Slots with an indexed copy."""
    evictable: int
    """Of the copies, those that nobody uses."""


class TierPool:
    """Slots, an index by block, and the least recently used order of the copies that nobody uses.

    Invariants: a slot is free, or taken without a copy, or under exactly one copy; a copy is evictable exactly when it
    is ready and has no references; a copy with references is never handed out as a victim.
    """

    def __init__(self, tier: Tier, slots: int) -> None:
        self.tier = tier
        self.slots = slots
        self._free: deque[Slot] = deque(Slot(slot) for slot in range(slots))
        self._copies: dict[BlockId, Copy] = {}
        self._evictable: OrderedDict[BlockId, Copy] = OrderedDict()

    @property
    def free(self) -> int:
        """Slots that can be taken at once."""
        return len(self._free)

    @property
    def available(self) -> int:
        """Slots that can be taken at once or after evictions."""
        return len(self._free) + len(self._evictable)

    def find(self, block: BlockId) -> Copy | None:
        """The copy of a block, ready or loading; its turn to go does not change."""
        return self._copies.get(block)

    def take(self) -> Slot | None:
        """A free slot, or None where an eviction must come first. Nothing else changes."""
        return self._free.popleft() if self._free else None

    def give_back(self, slot: Slot) -> None:
        """Return a slot that was taken and got no copy."""
        self._free.append(slot)

    def insert(self, copy: Copy) -> None:
        """Index a copy in a slot that was taken before. It is in use while it has references or loads."""
        assert copy.block.id not in self._copies, f"block {copy.block.id:016x} has a copy in {self.tier.name} already"
        self._copies[copy.block.id] = copy
        self._place(copy)

    def acquire(self, copy: Copy) -> int:
        """One more reference; the number after it."""
        copy.refs += 1
        self._evictable.pop(copy.block.id, None)
        return copy.refs

    def release(self, copy: Copy, now_ns: int) -> int:
        """One reference less; the number after it. The last one makes the copy the most recently used."""
        assert copy.refs > 0, f"block {copy.block.id:016x} in {self.tier.name} is released more often than acquired"
        copy.refs -= 1
        copy.used_ns = now_ns
        self._place(copy)
        return copy.refs

    def ready(self, copy: Copy, now_ns: int) -> None:
        """The copy's load is complete: readable from here on."""
        copy.state = CopyState.READY
        copy.used_ns = now_ns
        self._place(copy)

    def victim(self) -> Copy | None:
        """The least recently used copy that nobody uses; it stays until it is removed."""
        return next(iter(self._evictable.values()), None)

    def victims(self, limit: int) -> list[Copy]:
        """Up to `limit` victims, the least recently used first."""
        return [copy for copy, _ in zip(self._evictable.values(), range(limit), strict=False)]

    def remove(self, copy: Copy) -> None:
        """Forget a copy and free its slot."""
        assert copy.refs == 0, f"block {copy.block.id:016x} in {self.tier.name} is in use"
        self.forget(copy)
        self._free.append(copy.slot)

    def forget(self, copy: Copy) -> None:
        """Forget a copy and leave its slot taken, for whoever holds the slot."""
        del self._copies[copy.block.id]
        self._evictable.pop(copy.block.id, None)

    def statistics(self) -> PoolStatistics:
        """What is where, now."""
        return PoolStatistics(self.slots, len(self._free), len(self._copies), len(self._evictable))

    def _place(self, copy: Copy) -> None:
        """Put a copy that nobody uses at the end of the order of going."""
        if copy.refs == 0 and copy.state is CopyState.READY:
            self._evictable[copy.block.id] = copy
            self._evictable.move_to_end(copy.block.id)
