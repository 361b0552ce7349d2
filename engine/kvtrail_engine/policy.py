"""Whose turn it is to leave a tier: retention priority first, then the least recently used, with ageing.

Pure: no clock, no events, no slots. One object a tier; the engine's thread only.
"""

import heapq
from itertools import count
from typing import NamedTuple, Protocol

from kvtrail_engine.tiers.block import Copy

Key = tuple[int, int, int]


class EvictionPolicy(Protocol):
    """**Protocol:** orders the idle copies of one tier. It is told of each copy that nobody uses, and never of another.

    So a copy in active use can never be chosen: it is not here.
    """

    def offer(self, copy: Copy) -> None:
        """A copy became idle, as the most recently used of its priority. Offering it again renews it."""
        ...

    def withdraw(self, copy: Copy) -> None:
        """A copy is used again, or gone; nothing where it was not offered."""
        ...

    def victims(self, limit: int, owner: str | None = None) -> list[Copy]:
        """Up to `limit` copies in the order in which they would leave, of one owner where one is named. Changes nothing."""
        ...

    def idle(self, owner: str | None = None) -> int:
        """How many copies are offered, of one owner where one is named."""
        ...

    def advance(self, now_ns: int) -> list[Copy]:
        """Let priorities that have run out fall to the usual one; the idle copies that have expired by now."""
        ...


class _Entry(NamedTuple):
    """A copy in a heap. `number` is unique, so that copies are never compared."""

    key: Key
    number: int
    copy: Copy


class _LazyHeap:
    """A heap whose withdrawn entries are dropped when they come up, or when they are too many."""

    def __init__(self, live: dict[Copy, int]) -> None:
        self._live = live
        self._heap: list[_Entry] = []
        self.size = 0

    def push(self, entry: _Entry) -> None:
        """Add an entry."""
        heapq.heappush(self._heap, entry)
        if len(self._heap) > 2 * self.size + 64:
            self._heap = [known for known in self._heap if self._is_live(known)]
            heapq.heapify(self._heap)

    def first(self, limit: int) -> list[Copy]:
        """The lowest entries; they stay."""
        taken: list[_Entry] = []
        while self._heap and len(taken) < limit:
            entry = heapq.heappop(self._heap)
            if self._is_live(entry):
                taken.append(entry)
        for entry in taken:
            heapq.heappush(self._heap, entry)
        return [entry.copy for entry in taken]

    def pop_until(self, key: Key) -> list[Copy]:
        """Take out every live entry up to a key."""
        taken: list[Copy] = []
        while self._heap and self._heap[0].key <= key:
            entry = heapq.heappop(self._heap)
            if self._is_live(entry):
                taken.append(entry.copy)
        return taken

    def _is_live(self, entry: _Entry) -> bool:
        """Whether the copy is still offered under this number."""
        return self._live.get(entry.copy) == entry.number


class PriorityLru:
    """Priority, then least recently used.

    With `point_ns` one point of priority is worth so much idle time, no more: a copy of priority p that has been idle for
    t stands where one of priority 0 stands after t - p * point_ns. So old high priority falls below fresh low priority.
    With 0 nothing ages, and the priority decides alone.
    """

    def __init__(self, point_ns: int = 0) -> None:
        self._point_ns = point_ns
        self._numbers = count(1)
        self._live: dict[Copy, int] = {}
        self._all = _LazyHeap(self._live)
        self._by_owner: dict[str, _LazyHeap] = {}
        self._lapses = _LazyHeap(self._live)
        self._expiries = _LazyHeap(self._live)

    def offer(self, copy: Copy) -> None:
        """Put it behind its equals. O(log n)."""
        is_new = copy not in self._live
        number = self._live[copy] = next(self._numbers)
        entry = _Entry(self._key(copy, number), number, copy)
        owned = self._by_owner.setdefault(copy.block.owner, _LazyHeap(self._live))
        for heap in (self._all, owned):
            heap.size += is_new
            heap.push(entry)
        self._schedule(copy, number)

    def withdraw(self, copy: Copy) -> None:
        """Forget it; its entries are dropped later. O(1)."""
        if self._live.pop(copy, None) is None:
            return
        self._all.size -= 1
        owned = self._by_owner[copy.block.owner]
        owned.size -= 1
        if not owned.size:
            del self._by_owner[copy.block.owner]

    def victims(self, limit: int, owner: str | None = None) -> list[Copy]:
        """The lowest keys. O(limit log n)."""
        heap = self._all if owner is None else self._by_owner.get(owner)
        return [] if heap is None else heap.first(limit)

    def idle(self, owner: str | None = None) -> int:
        """O(1)."""
        if owner is None:
            return len(self._live)
        heap = self._by_owner.get(owner)
        return 0 if heap is None else heap.size

    def advance(self, now_ns: int) -> list[Copy]:
        """Lapses first: without ageing such a copy comes behind its new equals, with it where its last use puts it."""
        for copy in self._lapses.pop_until((now_ns, 0, 0)):
            copy.terms = copy.terms.at(now_ns)
            self.offer(copy)
        expired = self._expiries.pop_until((now_ns, 0, 0))
        for copy in expired:
            self._schedule(copy, self._live[copy])
        return expired

    def _key(self, copy: Copy, number: int) -> Key:
        """What is lower leaves first."""
        if self._point_ns:
            return (0, copy.used_ns + copy.terms.priority * self._point_ns, number)
        return (copy.terms.priority, number, 0)

    def _schedule(self, copy: Copy, number: int) -> None:
        """Remember when its terms change."""
        if copy.terms.priority_until_ns is not None:
            self._lapses.size = len(self._live)
            self._lapses.push(_Entry((copy.terms.priority_until_ns, 0, 0), number, copy))
        if copy.terms.expires_ns is not None:
            self._expiries.size = len(self._live)
            self._expiries.push(_Entry((copy.terms.expires_ns, 0, 0), number, copy))
