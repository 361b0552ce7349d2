"""What a detector of population verdicts is given, and what it gives back."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from kvtrail_schema.enums import Tier

from kvtrail_collector.attribution_shapes import EventRef, Measure, Window
from kvtrail_collector.attribution_tail import Excess
from kvtrail_collector.blame_accounts import Blame
from kvtrail_collector.bootstrap import Resamples
from kvtrail_collector.facts import Op, RequestFacts
from kvtrail_collector.facts_join import find_ops
from kvtrail_collector.facts_ops import op_structs
from kvtrail_collector.facts_rows import BoolArray, IntArray
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.population import Cause, Population
from kvtrail_collector.recorded import Arrival, Recorded


@dataclass(frozen=True)
class Case:
    """One window under suspicion: its requests, those of the reference, and by how much their tails differ."""

    recording: Recorded
    window: Window
    reference: Window
    reference_side: str
    requests: Population
    reference_requests: Population
    excess: Excess
    resamples: Resamples
    blame: Blame
    measure: Measure = Measure.TTFT

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The columns of all figures."""
        return self.requests.causes

    def excess_ns(self, cause: Cause) -> float:
        """How much more of a cause the tail of the window has; 0 for one that nobody met."""
        return float(self.excess.causes_ns[self.causes.index(cause)]) if cause in self.causes else 0.0

    @cached_property
    def tail(self) -> tuple[RequestFacts, ...]:
        """The requests in the tail of the window, slowest first; one with several gaps in the tail stands there once."""
        return self.recording.facts(self.tail_places)

    @cached_property
    def tail_places(self) -> list[int]:
        """Where the requests in the tail stand, slowest first."""
        return list(dict.fromkeys(self.requests.place[self.excess.window.rows].tolist()))

    @cached_property
    def tail_op_places(self) -> IntArray:
        """Where the transfers that the tail's requests waited for stand: their own in the order of the tail, then others'."""
        own, shared = self.recording.ops_of(self.tail_places), [op for facts in self.tail for op in facts.shared_ops]
        if not shared:
            return own
        stream, numbers = np.array([op.stream for op in shared]), np.array([op.op for op in shared], dtype=np.uint64)
        others = np.setdiff1d(find_ops(self.recording.ops, stream, numbers), np.append(own, -1))
        return np.concatenate([own, others])

    def tail_ops(self, tier: Tier) -> list[Op]:
        """The transfers of the tail's requests that a tier was the slower end of."""
        ops, own = self.recording.ops, self.tail_op_places
        return op_structs(ops, own[ops.tier[own] == tier])

    def ops_queued_in(self, window: Window, tier: Tier) -> BoolArray:
        """Which ops of a tier were queued in a window."""
        ops = self.recording.ops
        return np.asarray((ops.tier == tier) & (ops.queued_ns >= window.start_ns) & (ops.queued_ns < window.end_ns))

    @cached_property
    def tail_arrivals(self) -> dict[int, Arrival]:
        """The events that the requests in the tail began with, slowest first."""
        return dict(zip(self.tail_places, self.recording.arrivals(self.tail_places), strict=True))

    def exemplars(self, most: int) -> dict[str, str | None]:
        """The slowest requests of the tail, each once, as `epoch:rank:number`, with the engine's own texts for them."""
        found: dict[str, str | None] = {}
        for one in self.tail_arrivals.values():
            home = self.recording.rows.streams[one.stream]
            found[f"{home.epoch}:{home.rank}:{one.req}"] = one.text
            if len(found) == most:
                break
        return found

    def arrival(self, place: int) -> EventRef:
        """The event that a request began with, by its place in the recording."""
        known = self.tail_arrivals.get(place) or self.recording.arrivals([place])[0]
        return self.event(known.stream, known.seq)

    def event(self, stream: int, seq: int) -> EventRef:
        """The name of an event."""
        home = self.recording.rows.streams[stream]
        return EventRef(home.engine, home.epoch, home.rank, seq)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a detector found: the causes that it explains, and the figures and events that show it."""

    explains: tuple[Cause, ...]
    evidence: dict[str, float | int | str]
    events: tuple[EventRef, ...]
    tenant: str | None = None
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Detector:
    """One code: the components that call for it, the action that it names, and the test of its mechanism.

    `find` is asked once for each tier (None: no tier) that has more of one of the components than the reference. It
    returns None where the look-alike is the better explanation.
    """

    code: str
    components: frozenset[Component]
    action: str
    find: Callable[[Case, Tier | None], Finding | None]
