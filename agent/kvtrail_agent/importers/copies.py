"""Which copies of blocks a source has told of: gives each a place of its own, since events of engines name no places.

A copy is (tier, block, group); an engine may hold several of one block, each told once when it comes and once when it goes.
Places count from 0 in each tier, the smallest free one first. Memory: some 200 bytes for each copy that is there.
"""

import heapq
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, NamespaceId, Slot


class Name(NamedTuple):
    """What a source calls a copy by; `group` tells caches of one engine apart that share hashes."""

    tier: Tier
    block: BlockId
    group: int = 0


class Copy(NamedTuple):
    """Where a copy is, whose it is, and where in its prompt it ends, as far as that is known."""

    slot: Slot
    ns: NamespaceId | None = None
    end_tokens: int | None = None


@dataclass(slots=True)
class _Places:
    """The places of one tier."""

    free: list[int] = field(default_factory=list)
    used: int = 0

    def take(self) -> Slot:
        """The smallest free place."""
        if self.free:
            return Slot(heapq.heappop(self.free))
        self.used += 1
        return Slot(self.used - 1)


@dataclass(slots=True)
class Copies:
    """The copies of one stream; used by one thread."""

    _held: dict[Name, deque[Copy]] = field(default_factory=dict)
    _places: defaultdict[Tier, _Places] = field(default_factory=lambda: defaultdict(_Places))

    def __len__(self) -> int:
        return sum(len(copies) for copies in self._held.values())

    def add(self, name: Name, ns: NamespaceId | None = None, end_tokens: int | None = None) -> Copy:
        """A copy came."""
        copy = Copy(self._places[name.tier].take(), ns, end_tokens)
        self._held.setdefault(name, deque()).append(copy)
        return copy

    def find(self, name: Name) -> Copy | None:
        """The oldest copy of that name; None where none was told of."""
        copies = self._held.get(name)
        return copies[0] if copies else None

    def remove(self, name: Name) -> Copy | None:
        """A copy, the oldest of that name, went; None where none was told of."""
        copies = self._held.get(name)
        if not copies:
            return None
        copy = copies.popleft()
        if not copies:
            del self._held[name]
        heapq.heappush(self._places[name.tier].free, copy.slot)
        return copy

    def passing_place(self, tier: Tier) -> Slot:
        """A place for something that is told of only as it goes."""
        places = self._places[tier]
        return Slot(places.free[0] if places.free else places.used)

    def clear(self, tier: Tier) -> int:
        """Everything in a tier went; how many copies that were."""
        gone = [name for name in self._held if name.tier is tier]
        count = sum(len(self._held.pop(name)) for name in gone)
        self._places.pop(tier, None)
        return count

    def blocks(self, tier: Tier) -> frozenset[BlockId]:
        """The blocks of which a tier has a copy."""
        return frozenset(name.block for name in self._held if name.tier is tier)
