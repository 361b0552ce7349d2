"""One tier's slots and the copies in them: who is where, who is in use, and whose turn it is to go.

Everything here runs on the engine's thread; no lock is needed.
"""

from collections import Counter, deque
from collections.abc import Iterable
from typing import NamedTuple

from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, Slot

from kvtrail_engine.identity.holdings import Holdings
from kvtrail_engine.policy import EvictionPolicy, PriorityLru
from kvtrail_engine.tiers.block import Block, Copy, CopyState, Doom, Terms

__all__ = ["Block", "Copy", "CopyState", "Doom", "PoolStatistics", "Terms", "TierPool"]


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
    held_back: int = 0
    """Slots that the device had no room for, until they are tried again."""


class TierPool:
    """Slots, an index by block, who owns how many of them, and a policy that orders the copies that nobody uses.

    Invariants: a slot is free, or taken without a copy, or under exactly one copy; a copy is evictable exactly when it
    is ready, indexed and has no references; a copy with references is never handed out as a victim.
    """

    def __init__(self, tier: Tier, slots: int, policy: EvictionPolicy | None = None, holdings: Holdings | None = None) -> None:
        self.tier = tier
        self.slots = slots
        self._free: deque[Slot] = deque(Slot(slot) for slot in range(slots))
        self._copies: dict[BlockId, Copy] = {}
        self._policy: EvictionPolicy = PriorityLru() if policy is None else policy
        self._holdings = Holdings() if holdings is None else holdings
        self._owner_of: dict[Slot, str] = {}
        self._held: Counter[str] = Counter()
        self._proven: set[Slot] = set()
        self._held_back: list[Slot] = []
        self._held_back_until_ns = 0

    @property
    def free(self) -> int:
        """Slots that can be taken at once."""
        return len(self._free)

    @property
    def available(self) -> int:
        """Slots that can be taken at once or after evictions."""
        return len(self._free) + self._policy.idle()

    def find(self, block: BlockId) -> Copy | None:
        """The copy of a block, ready or loading; its turn to go does not change."""
        return self._copies.get(block)

    def held(self, owner: str) -> int:
        """Slots that a tenant has taken, with a copy or without."""
        return self._held[owner]

    def idle(self, owner: str) -> int:
        """Of a tenant's slots, those that could be evicted."""
        return self._policy.idle(owner)

    def take(self, owner: str = "") -> Slot | None:
        """A free slot for a tenant, or None where an eviction must come first. Nothing else changes."""
        if not self._free:
            return None
        slot = self._free.popleft()
        self._owner_of[slot] = owner
        self._held[owner] += 1
        return slot

    def give_back(self, slot: Slot) -> None:
        """Return a slot that was taken and has no copy (any more)."""
        owner = self._owner_of.pop(slot)
        self._held[owner] -= 1
        if not self._held[owner]:
            del self._held[owner]
        self._free.append(slot)

    def hold_back(self, until_ns: int) -> int:
        """Offer no slot for a while that was never filled: the device had no room for it; how many more are held back."""
        unproven = [slot for slot in self._free if slot not in self._proven]
        self._free = deque(slot for slot in self._free if slot in self._proven)
        self._held_back += unproven
        self._held_back_until_ns = until_ns
        return len(unproven)

    def offer_again(self, now_ns: int) -> None:
        """Slots that were held back long enough are free again."""
        if self._held_back and now_ns >= self._held_back_until_ns:
            self._free.extend(self._held_back)
            self._held_back.clear()

    def adopt(self, copies: Iterable[Copy]) -> None:
        """Index copies that lie in slots which nobody has taken, the one used longest ago first."""
        known = list(copies)
        lying = {copy.slot for copy in known}
        self._free = deque(slot for slot in self._free if slot not in lying)
        for copy in known:
            self._owner_of[copy.slot] = copy.block.owner
            self._held[copy.block.owner] += 1
            self._proven.add(copy.slot)
            self.insert(copy)

    def insert(self, copy: Copy) -> None:
        """Index a copy in a slot that was taken before. It is in use while it has references or loads."""
        assert copy.block.id not in self._copies, f"block {copy.block.id:016x} has a copy in {self.tier.name} already"
        self._copies[copy.block.id] = copy
        self._holdings.add(copy.block)
        self._place(copy)

    def acquire(self, copy: Copy) -> int:
        """One more reference; the number after it."""
        copy.refs += 1
        self._policy.withdraw(copy)
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
        self._proven.add(copy.slot)
        self._place(copy)

    def victim(self, owner: str | None = None) -> Copy | None:
        """The copy that nobody uses and whose turn it is, of one tenant where one is named; it stays until it is removed."""
        return next(iter(self.victims(1, owner)), None)

    def victims(self, limit: int, owner: str | None = None) -> list[Copy]:
        """Up to `limit` victims, in the order in which they would leave."""
        return self._policy.victims(limit, owner)

    def advance(self, now_ns: int) -> list[Copy]:
        """Let priorities lapse; the idle copies that have expired."""
        return self._policy.advance(now_ns)

    def copies(self) -> list[Copy]:
        """Every indexed copy, in no order."""
        return list(self._copies.values())

    def remove(self, copy: Copy) -> None:
        """Forget a copy and free its slot."""
        assert copy.refs == 0, f"block {copy.block.id:016x} in {self.tier.name} is in use"
        self.forget(copy)
        self.give_back(copy.slot)

    def forget(self, copy: Copy) -> None:
        """Forget a copy and leave its slot taken, for whoever holds the slot. A condemned copy was forgotten before."""
        if self._copies.get(copy.block.id) is copy:
            del self._copies[copy.block.id]
            self._holdings.drop(copy.block)
        self._policy.withdraw(copy)

    def condemn(self, copy: Copy, doom: Doom) -> None:
        """Take an invalidated copy out of the index, so that nobody finds it any more; its slot stays taken for now."""
        copy.doom = doom
        self.forget(copy)

    def statistics(self) -> PoolStatistics:
        """What is where, now."""
        return PoolStatistics(self.slots, len(self._free), len(self._copies), self._policy.idle(), len(self._held_back))

    def _place(self, copy: Copy) -> None:
        """Offer a copy that nobody uses to the policy."""
        if copy.refs == 0 and copy.state is CopyState.READY and copy.doom is None:
            self._policy.offer(copy)
