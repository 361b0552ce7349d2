"""Delivery: which frames are under way, which go to the spool, and when to try again. Decides; never blocks.

Frames leave in their order. While all is well a frame goes straight from the ring to the transport, and its room in the
ring is given back once it is acknowledged. When the transport is down or slow the frame is kept in the spool instead, and
the ring is free at once; then the spool goes first until it is empty.
"""

import contextlib
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kvtrail_schema.clock import Clock

from kvtrail_agent.courier import Courier, Outcome, Verdict
from kvtrail_agent.delivery_sources import HeldParcel, Source, SpooledFrames
from kvtrail_agent.parcel import Parcel
from kvtrail_agent.spool import Spool
from kvtrail_agent.spool_leftovers import Leftovers

_SLOW_NS: Final = 1_000_000_000
_SLOW_PRESSED_NS: Final = 100_000_000
_FIRST_BACKOFF_S: Final = 0.05
_LONGEST_BACKOFF_S: Final = 1.0
_MOST_FRAMES: Final = 32
_TELL_INTERVAL_NS: Final = 1_000_000_000
_MOST_LINES: Final = 2000


class Offer(Enum):
    """What became of a frame from the ring."""

    SETTLED = "settled"  # acknowledged, or in the spool: its room in the ring may go
    WAIT = "wait"  # under way: ask again
    REFUSED = "refused"  # the transport does not take it now, and the spool has no room


@dataclass(slots=True)
class Job:
    """What the courier carries, and since when."""

    source: Source
    begun_ns: int


def tell_on_stderr(text: str) -> None:
    """A line for the operator, in the shipper's log; a disk that has no room for it costs the line alone."""
    with contextlib.suppress(OSError):
        print(f"kvtrail shipper: {text}", file=sys.stderr, flush=True)  # noqa: T201 - where a shipper speaks


class Delivery:
    """Carries the frames of one stream, and between them those that other shippers left behind. One thread."""

    def __init__(
        self,
        courier: Courier,
        spool: Spool | None,
        *,
        clock: Clock,
        leftovers: Leftovers | None = None,
        orphaned: bool = False,
        seed: int = 0,
        name: str = "left behind",
        tell: Callable[[str], None] = tell_on_stderr,
    ) -> None:
        self._courier = courier
        self._spooled = None if spool is None else SpooledFrames(spool, orphaned)
        self._leftovers = leftovers
        self._clock = clock
        self._jitter = random.Random(seed)  # noqa: S311 - spreads retries, hides nothing
        self._name = name
        self._tell = tell
        self._job: Job | None = None
        self._held: HeldParcel | None = None
        self._backoff_s = 0.0  # 0 while the transport takes what it is given
        self._retry_ns = 0
        self._told = 0
        self._told_ns = clock.monotonic_ns() - _TELL_INTERVAL_NS
        self.progress_ns = clock.monotonic_ns()
        """When the transport last answered with anything but failure; begins with the start."""

    @property
    def is_empty(self) -> bool:
        """Whether every frame of the own stream that was offered is acknowledged."""
        return self._held is None and self._is_own_empty

    @property
    def _is_own_empty(self) -> bool:
        """Whether the own spool holds nothing."""
        return self._spooled is None or self._spooled.is_empty

    def collect(self) -> None:
        """Take the outcome of the job under way, if it has one."""
        if self._job is None or (outcome := self._courier.outcome()) is None:
            return
        job, self._job = self._job, None
        job.source.settle(outcome)
        if outcome.verdict is Verdict.UNAVAILABLE:
            self._fail(outcome)
        else:
            self._succeed(outcome)

    def begin_next(self) -> None:
        """Start a job from the own spool, else from one that was left behind, if the courier is free and it is time."""
        now = self._clock.monotonic_ns()
        if self._job is not None or now < self._retry_ns:
            return
        if self._spooled is not None and not self._spooled.is_empty:
            # After a failure one frame tells whether the other side is back.
            self._begin(self._spooled, 1 if self._backoff_s else _MOST_FRAMES)
        elif self._leftovers is not None and self._held is None and not self._backoff_s:
            source = self._leftovers.current(now)
            if source is not None:
                self._begin(source, _MOST_FRAMES // 4)

    def offer(self, parcel: Parcel, *, is_pressed: bool) -> Offer:
        """Send the next frame of the ring, or keep it in the spool; offer the same one until it is settled or withdrawn.

        `is_pressed`: the ring is filling up, so that waiting for a slow answer could cost events.
        """
        held = self._held = self._held or HeldParcel(parcel)
        offer = Offer.SETTLED if held.is_settled else self._go_on(held, is_pressed)
        if offer is Offer.SETTLED:
            self._held = None
        return offer

    def withdraw(self) -> None:
        """Forget the frame that was offered; it is not under way."""
        self._held = None

    def _go_on(self, held: HeldParcel, is_pressed: bool) -> Offer:
        """Send it, wait for it, or keep it in the spool."""
        now = self._clock.monotonic_ns()
        if self._is_own_empty:
            if self._job is None and now >= self._retry_ns:
                self._begin(held, 1)
                return Offer.WAIT
            if self._job is not None and not self._is_slow(self._job, now, is_pressed):
                return Offer.WAIT
        if held.parcel.is_heartbeat or self._keep(held):
            return Offer.SETTLED
        return Offer.WAIT if self._spooled is None or self._is_under_way(held) else Offer.REFUSED

    def _is_slow(self, job: Job, now: int, is_pressed: bool) -> bool:
        """Whether an answer takes so long that the ring must not wait for it."""
        return now - job.begun_ns > (_SLOW_PRESSED_NS if is_pressed else _SLOW_NS)

    def _is_under_way(self, held: HeldParcel) -> bool:
        """Whether the courier has this very frame."""
        return self._job is not None and self._job.source is held

    def _keep(self, held: HeldParcel) -> bool:
        """Put a frame into the spool, though it may be under way; says whether there was room."""
        if self._spooled is None:
            return False
        end = self._spooled.spool.append(held.parcel.frame)
        if end is None:
            return False
        if self._job is not None and self._job.source is held:
            self._spooled.take_over(held.parcel, end)
            self._job.source = self._spooled
        return True

    def _begin(self, source: Source, most: int) -> None:
        """Give the courier what a source has to send."""
        parcels = source.parcels(most)
        if parcels:
            self._job = Job(source, self._clock.monotonic_ns())
            self._courier.begin(parcels)

    def _fail(self, outcome: Outcome) -> None:
        """Wait a while, longer each time, each wait cut by a random part so that many shippers do not return at once."""
        if not self._backoff_s:
            kept = "they wait in the ring" if self._spooled is None else "they go into the spool"
            self._say(f"events do not leave, {kept}: {outcome.why}")
        self._backoff_s = min(self._backoff_s * 2, _LONGEST_BACKOFF_S) if self._backoff_s else _FIRST_BACKOFF_S
        self._retry_ns = self._clock.monotonic_ns() + int(self._backoff_s * self._jitter.uniform(0.5, 1.0) * 1e9)

    def _succeed(self, outcome: Outcome) -> None:
        """The other side is there."""
        if self._backoff_s:
            self._say("events leave again")
        if outcome.verdict is Verdict.REJECTED:
            self._say(f"batch refused: {outcome.why}")
        self._backoff_s, self._retry_ns = 0.0, 0
        self.progress_ns = self._clock.monotonic_ns()

    def _say(self, text: str) -> None:
        """Tell the operator, once a second at most, and not for ever: the log is bounded."""
        now = self._clock.monotonic_ns()
        if now - self._told_ns >= _TELL_INTERVAL_NS and self._told < _MOST_LINES:
            self._told, self._told_ns = self._told + 1, now
            self._tell(f"{self._name}: {text}")
