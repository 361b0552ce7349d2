"""Which actions this engine has applied by order, until when; tells each change as an event. Used under the receiver's lock."""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from kvtrail_schema.clock import Clock
from kvtrail_schema.degrade import Action, DegradeControls, DegradeOrder, Desired
from kvtrail_schema.emitter import Emitter
from kvtrail_schema.errors import OrderInvalid
from kvtrail_schema.identity import EventId

LOG: Final = logging.getLogger("kvtrail")


class Held(NamedTuple):
    """An action in force: its end on the monotonic clock, and the event that asked for it."""

    action: Action
    until_ns: int
    asked_by: EventId
    is_sure: bool
    """False: the engine was asked and did not answer, so it may have done it; it is ended in its time like any other."""


class Book:
    """Carries orders out. Ends what nobody renews: an engine is never left degraded by a collector that is gone."""

    def __init__(self, controls: DegradeControls, emit: Emitter, clock: Clock, first_event: int) -> None:
        self._controls, self._emit, self._clock = controls, emit, clock
        self._held: dict[str, Held] = {}
        self._next_event = first_event

    def in_force(self) -> dict[str, Held]:
        """What is applied now, or may be, by its text."""
        return dict(self._held)

    def carry_out(self, order: DegradeOrder, now_wall_ns: int) -> None:
        """Make it so, and tell. Blocks until the engine has done it.

        Raises:
            OrderInvalid: this engine cannot.
            TimeoutError: it did not come to it.
        """
        text, now_ns = str(order.action), self._clock.monotonic_ns()
        until_ns = now_ns + (order.expires_wall_ns - now_wall_ns)
        known = self._held.get(text)
        if order.state is Desired.APPLIED and known is not None and known.is_sure:
            self._held[text] = known._replace(until_ns=until_ns)
            return
        asked_by = self._event()
        self._emit.degrade_requested(
            f"release {text}" if order.state is Desired.RELEASED else text, asked_by, deadline_ns=until_ns
        )
        if order.state is Desired.APPLIED:
            self._apply(text, Held(order.action, until_ns, asked_by, is_sure=False), known)
        elif known is not None:
            self._release(text, known, asked_by)
        else:
            self._controls.release(order.action)  # an engine may hold what this book does not know of

    def expire(self) -> None:
        """End what is over. Never raises; what could not be ended is tried again, and holds up nothing else."""
        now_ns = self._clock.monotonic_ns()
        self._end([text for text, held in self._held.items() if held.until_ns <= now_ns])

    def release_all(self) -> None:
        """End everything. Never raises."""
        self._end(list(self._held))

    def _apply(self, text: str, asked: Held, known: Held | None) -> None:
        """Have the engine do it, and tell. It is held from before it is asked: whatever comes of that, it ends in time."""
        self._held[text] = asked
        try:
            self._controls.apply(asked.action)
        except OrderInvalid:
            if known is None:
                del self._held[text]
            raise
        self._held[text] = asked._replace(is_sure=True)
        self._emit.degrade_applied(text, self._event(), asked.asked_by, asked.until_ns)

    def _end(self, texts: list[str]) -> None:
        """End actions, each by itself."""
        for text in texts:
            try:
                self._release(text, self._held[text], self._held[text].asked_by)
            except Exception as error:  # noqa: BLE001 - controls may be anybody's, and the others have to end all the same
                LOG.warning("kvtrail: %s could not be ended, and will be tried again: %r", text, error)

    def _release(self, text: str, held: Held, cause: EventId) -> None:
        """End one action, and tell."""
        self._controls.release(held.action)
        del self._held[text]
        self._emit.degrade_cleared(text, self._event(), cause)

    def _event(self) -> EventId:
        """The id of the next event."""
        self._next_event += 1
        return EventId(self._next_event)
