"""The ids that an engine draws: counters, unique in the process, with the rank in the high bits (EVENTS §1)."""

from itertools import count

from kvtrail_schema.identity import EventId, OpId, PrefetchId, RequestId, StepId

RANK_SHIFT = 48


class Ids:
    """Runs on the engine's thread only (requests: under the lock of whoever submits). One counter a sort of id."""

    def __init__(self, rank: int = 0) -> None:
        first = (rank << RANK_SHIFT) + 1
        self._requests = count(first)
        self._ops = count(first)
        self._steps = count(first)
        self._events = count(first)
        self._prefetches = count(first)

    def request(self) -> RequestId:
        """The next request's id. `next` on a counter is atomic, so any thread may ask."""
        return RequestId(next(self._requests))

    def op(self) -> OpId:
        """The next op's id."""
        return OpId(next(self._ops))

    def step(self) -> StepId:
        """The next step's id."""
        return StepId(next(self._steps))

    def prefetch(self) -> PrefetchId:
        """The next prefetch's id."""
        return PrefetchId(next(self._prefetches))

    def event(self) -> EventId:
        """The next id for an event that can cause others."""
        return EventId(next(self._events))
