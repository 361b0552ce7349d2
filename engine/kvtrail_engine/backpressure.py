"""Backpressure, layer by layer: which layers push back now, and how much work is admitted because of it.

host queue full: writes to host are left out · disk queue full: fewer prompts are taken in · remote queue full: nothing more is
moved there · remote lost: what lies there is computed again. Each begins when the layer is full and ends when it is half
empty, so that it does not flutter; each change is an event.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kvtrail_schema.absent import NO_U32, NO_U64
from kvtrail_schema.emitter import Emitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import EventId
from kvtrail_schema.reasons import AdmissionReason, BackpressureReason

from kvtrail_engine.ids import Ids
from kvtrail_engine.tiers.queue import TransferQueue

_TIER_OF = {
    BackpressureReason.HOST_QUEUE: Tier.HOST,
    BackpressureReason.DISK_QUEUE: Tier.NVME,
    BackpressureReason.REMOTE_QUEUE: Tier.REMOTE,
    BackpressureReason.REMOTE_LOST: Tier.REMOTE,
}
QUEUE_FULL: Final = {
    Tier.HOST: BackpressureReason.HOST_QUEUE,
    Tier.NVME: BackpressureReason.DISK_QUEUE,
    Tier.REMOTE: BackpressureReason.REMOTE_QUEUE,
}
"""What a tier says whose queue is full."""


class PressureStatistics(NamedTuple):
    """Backpressure at one moment."""

    on: tuple[BackpressureReason, ...]
    """The layers that push back."""
    begun: int
    """How often one began to, since the start."""
    admission_tokens: int | None
    """The limit on prompt tokens in work; None: no limit."""


class Pressure:
    """The engine's thread only; never blocks. Changes are told once, whatever asks for them how often."""

    def __init__(self, emit: Emitter, ids: Ids) -> None:
        self._emit = emit
        self._ids = ids
        self._on: dict[BackpressureReason, EventId] = {}
        self._begun = 0
        self.admission_tokens: int | None = None

    def is_on(self, reason: BackpressureReason) -> bool:
        """Whether this layer pushes back."""
        return reason in self._on

    def began_by(self, reason: BackpressureReason) -> EventId | None:
        """The id of the event that said so, to be the cause of what follows from it."""
        return self._on.get(reason)

    def begin(self, reason: BackpressureReason, depth: int | None = None) -> None:
        """The layer pushes back from now on."""
        if reason in self._on:
            return
        event = self._ids.event()
        self._on[reason] = event
        self._begun += 1
        self._emit.backpressure_on(_TIER_OF[reason], reason, NO_U32 if depth is None else depth, event)

    def end(self, reason: BackpressureReason, depth: int | None = None) -> None:
        """The layer pushes back no more."""
        if self._on.pop(reason, None) is not None:
            depth_or_none = NO_U32 if depth is None else depth
            self._emit.backpressure_off(_TIER_OF[reason], reason, depth_or_none, self._ids.event())

    def limit_admission(self, tokens: int | None, normal_tokens: int) -> None:
        """Take in prompts up to this many tokens at a time; None lifts the limit, and tells what it is without one."""
        if (tokens is None) == (self.admission_tokens is None):
            return
        self.admission_tokens = tokens
        if tokens is None:
            self._emit.admission_limited(normal_tokens, AdmissionReason.CLEARED)
            return
        cause = self._on.get(BackpressureReason.DISK_QUEUE, NO_U64)
        self._emit.admission_limited(tokens, AdmissionReason.BACKPRESSURE, cause)

    def statistics(self) -> PressureStatistics:
        """What pushes back, now. From any thread; the parts were read one after the other."""
        return PressureStatistics(tuple(self._on), self._begun, self.admission_tokens)


class QueueWatch:
    """Looks at the queues once a turn of the engine's thread: a lock and a few numbers each."""

    def __init__(self, pressure: Pressure, queues: Mapping[Tier, TransferQueue]) -> None:
        self._pressure = pressure
        self._queues = dict(queues)

    def review(self) -> None:
        """Begin where a queue is full, end where at most half of it is taken."""
        for tier, queue in self._queues.items():
            found, reason = queue.statistics(), QUEUE_FULL[tier]
            if found.waiting >= found.capacity:
                self._pressure.begin(reason, found.waiting)
            elif self._pressure.is_on(reason) and found.waiting <= found.capacity // 2:
                self._pressure.end(reason, found.waiting)
