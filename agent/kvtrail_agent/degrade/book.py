"""Which actions this engine has applied by order, until when; tells each change as an event. Used under the receiver's lock."""

from __future__ import annotations

from typing import NamedTuple

from kvtrail_schema.clock import Clock
from kvtrail_schema.degrade import Action, DegradeControls, DegradeOrder, Desired
from kvtrail_schema.emitter import Emitter
from kvtrail_schema.identity import EventId


class Held(NamedTuple):
    """An action in force: its end on the monotonic clock, and the event that asked for it."""

    action: Action
    until_ns: int
    asked_by: EventId


class Book:
    """Carries orders out. Ends what nobody renews: an engine is never left degraded by a collector that is gone."""

    def __init__(self, controls: DegradeControls, emit: Emitter, clock: Clock, first_event: int) -> None:
        self._controls, self._emit, self._clock = controls, emit, clock
        self._held: dict[str, Held] = {}
        self._next_event = first_event

    def in_force(self) -> dict[str, Held]:
        """What is applied now, by its text."""
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
        if order.state is Desired.APPLIED and known is not None:
            self._held[text] = known._replace(until_ns=until_ns)
            return
        asked_by = self._event()
        self._emit.degrade_requested(
            f"release {text}" if order.state is Desired.RELEASED else text, asked_by, deadline_ns=until_ns
        )
        if order.state is Desired.APPLIED:
            self._controls.apply(order.action)
            self._held[text] = Held(order.action, until_ns, asked_by)
            self._emit.degrade_applied(text, self._event(), asked_by, until_ns)
        elif known is not None:
            self._release(text, known, asked_by)

    def expire(self) -> None:
        """End what is over.

        Raises:
            TimeoutError: the engine did not come to it; it is tried again.
        """
        now_ns = self._clock.monotonic_ns()
        for text, held in [(text, held) for text, held in self._held.items() if held.until_ns <= now_ns]:
            self._release(text, held, held.asked_by)

    def release_all(self) -> None:
        """End everything. Raises as `expire`."""
        for text, held in list(self._held.items()):
            self._release(text, held, held.asked_by)

    def _release(self, text: str, held: Held, cause: EventId) -> None:
        """End one action, and tell."""
        self._controls.release(held.action)
        del self._held[text]
        self._emit.degrade_cleared(text, self._event(), cause)

    def _event(self) -> EventId:
        """The id of the next event."""
        self._next_event += 1
        return EventId(self._next_event)
