"""What other threads tell the engine's thread, in order; the only door between them."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from kvtrail_schema.identity import RequestId

from kvtrail_engine.request import RequestHandle
from kvtrail_engine.tiers.transfer import Transfer


@dataclass(frozen=True, slots=True)
class Submitted:
    """A request came at this moment."""

    handle: RequestHandle
    arrived_ns: int


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """A sender wants no answer any more."""

    req: RequestId


@dataclass(frozen=True, slots=True)
class OpStarted:
    """A worker took an op."""

    transfer: Transfer


@dataclass(frozen=True, slots=True)
class OpEnded:
    """A worker has done with an op."""

    transfer: Transfer


@dataclass(frozen=True, slots=True)
class Call:
    """Something to run on the engine's thread, between two steps."""

    run: Callable[[], None]


@dataclass(frozen=True, slots=True)
class CloseAsked:
    """Cancel what is left, and end."""


Message = Submitted | CancelAsked | OpStarted | OpEnded | Call | CloseAsked


class Inbox:
    """Any thread puts and never waits for long; the engine's thread alone drains and waits."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._messages: deque[Message] = deque()  # guarded by _condition

    def put(self, message: Message, *, wakes: bool = True) -> None:
        """Add a message; `wakes` is off for what can wait until the thread wakes anyway."""
        with self._condition:
            self._messages.append(message)
            if wakes:
                self._condition.notify()

    def drain(self) -> list[Message]:
        """Everything so far, in order."""
        with self._condition:
            messages = list(self._messages)
            self._messages.clear()
        return messages

    def wait(self, timeout_ns: int) -> None:
        """Sleep until something wakes, at most this long; at once if there is a message."""
        if timeout_ns <= 0:
            return
        with self._condition:
            if not self._messages:
                self._condition.wait(timeout_ns / 1e9)


class InboxReports:
    """Tells the engine's thread what its workers do.

    `deliver_end` is where ends go: into the inbox. Drills replace it, as a whole, to have ends noticed late; read once an op.
    """

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self.deliver_end: Callable[[OpEnded], None] = self.put_end

    def started(self, transfer: Transfer) -> None:
        """Told when the thread wakes next: nothing waits for it."""
        self._inbox.put(OpStarted(transfer), wakes=False)

    def ended(self, transfer: Transfer) -> None:
        """Told at once: somebody may wait for it."""
        self.deliver_end(OpEnded(transfer))

    def put_end(self, ended: OpEnded) -> None:
        """Into the inbox, at once."""
        self._inbox.put(ended)
