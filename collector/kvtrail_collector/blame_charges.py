"""What waits were charged to, as columns: very many ops share a wait, and few of them are ever looked at one by one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, overload

import numpy as np
from kvtrail_schema.enums import Tier

from kvtrail_collector.facts import Op
from kvtrail_collector.facts_ops import OpColumns, op_structs
from kvtrail_collector.facts_rows import NO_ID, IntArray

NO_OP: Final = -1
"""In the place of an op: nobody, the queue was idle."""
_QUEUES: Final = 1 << 17
"""More than there are numbers of engines' own queues."""


@dataclass(frozen=True, slots=True, order=True)
class QueueKey:
    """One queue: of a tier in a stream, or the engine's own where it names one (-1: it does not)."""

    stream: int
    tier: Tier
    queue: int


def queues_of(ops: OpColumns) -> IntArray:
    """The queue of each op, as a number."""
    return np.asarray((ops.stream * len(Tier) + ops.tier) * _QUEUES + ops.queue + 1)


def queue_key(number: int) -> QueueKey:
    """The queue behind its number."""
    place, own = divmod(number, _QUEUES)
    stream, tier = divmod(place, len(Tier))
    return QueueKey(stream, Tier(tier), own - 1)


@dataclass(frozen=True, slots=True)
class Blamed:
    """An op (None: nobody, the queue was idle) and what was charged to it."""

    key: QueueKey
    op: Op | None
    ns: int


@dataclass(frozen=True, slots=True)
class Charged(Sequence[Blamed]):
    """Charges, largest first: the number of each one's queue, the place of its op or `NO_OP`, and how much it is.

    To ask for one makes its structs, about two microseconds each.
    """

    ops: OpColumns
    queue: IntArray
    op: IntArray
    ns: IntArray

    @classmethod
    def of(cls, ops: OpColumns, parts: Sequence[tuple[int, IntArray, IntArray]]) -> "Charged":
        """Put the charges of some queues in order: each queue with places of ops and what is charged to them."""
        nothing = np.zeros(0, dtype=np.int64)
        queue, op, ns = (
            np.concatenate([nothing, *own])
            for own in (
                [np.full(len(places), number) for number, places, _ in parts],
                [places for _, places, _ in parts],
                [charges for _, _, charges in parts],
            )
        )
        order = np.argsort(-ns, kind="stable")
        return cls(ops, queue[order], op[order], ns[order])

    @property
    def total_ns(self) -> int:
        """All that was waited."""
        return int(self.ns.sum())

    def worst(self, most: int, *, only_prefetches: bool = False) -> list[Op]:
        """The ops that most is charged to."""
        chosen = self.op[self.op != NO_OP]
        if only_prefetches:
            chosen = chosen[self.ops.prefetch[chosen] != NO_ID]
        return op_structs(self.ops, chosen[:most])

    def __len__(self) -> int:
        """How many charges."""
        return len(self.ns)

    @overload
    def __getitem__(self, index: int) -> Blamed: ...

    @overload
    def __getitem__(self, index: slice) -> list[Blamed]: ...

    def __getitem__(self, index: int | slice) -> Blamed | list[Blamed]:
        """One charge, or some."""
        places = range(len(self))[index]
        return self._at(places) if isinstance(places, int) else [self._at(place) for place in places]

    def __iter__(self) -> Iterator[Blamed]:
        """All charges in turn."""
        return (self._at(place) for place in range(len(self)))

    def _at(self, place: int) -> Blamed:
        """The charge at a place."""
        op = int(self.op[place])
        own = None if op == NO_OP else op_structs(self.ops, np.array([op]))[0]
        return Blamed(queue_key(int(self.queue[place])), own, int(self.ns[place]))
