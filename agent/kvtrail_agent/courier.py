"""Who hands frames to a transport: a thread of its own, so that a slow other side never keeps the shipper from the ring.

One job is under way at a time. All decisions stay with the shipper's main thread; the courier's thread only blocks.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from kvtrail_agent.errors import BatchRejected, TransportUnavailable
from kvtrail_agent.parcel import Parcel
from kvtrail_agent.transports import Transport

FLUSH_TIMEOUT_S: Final = 10.0


class Verdict(Enum):
    """How a job ended."""

    DELIVERED = "delivered"
    UNAVAILABLE = "unavailable"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The first `acknowledged` frames of a job are stored; `verdict` is about what came after them, `why` its reason."""

    acknowledged: int
    verdict: Verdict
    why: str = ""


class Courier(Protocol):
    """**Protocol:** carries one job at a time. Called by the shipper's main thread alone."""

    def begin(self, parcels: Sequence[Parcel]) -> None:
        """Start a job; the outcome of the one before was taken."""
        ...

    def outcome(self) -> Outcome | None:
        """How the job ended, once; None while it is under way."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Return when a job has ended, or after the time."""
        ...


def carry(transport: Transport, parcels: Sequence[Parcel]) -> Outcome:
    """Send frames in their order and flush once. Blocks within the transport's own timeouts."""
    sent = 0
    try:
        for parcel in parcels:
            transport.send(parcel.frame, parcel.header)
            sent += 1
        transport.flush(FLUSH_TIMEOUT_S)
    except TransportUnavailable as error:
        return Outcome(0, Verdict.UNAVAILABLE, str(error))
    except BatchRejected as error:
        return _after_rejection(transport, sent, len(parcels), str(error))
    return Outcome(len(parcels), Verdict.DELIVERED)


def _after_rejection(transport: Transport, sent: int, total: int, why: str) -> Outcome:
    """Which frame was refused: the one being sent, or, told by the flush, the only one; of several nobody knows."""
    if sent == total:
        return Outcome(0, Verdict.REJECTED if total == 1 else Verdict.UNAVAILABLE, why)
    try:
        transport.flush(FLUSH_TIMEOUT_S)
    except (TransportUnavailable, BatchRejected):
        return Outcome(0, Verdict.UNAVAILABLE, why)
    return Outcome(sent, Verdict.REJECTED, why)


class ThreadCourier:
    """Blocks in a daemon thread of its own, so that a process may end while a transport hangs."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._changed = threading.Condition()
        self._job: Sequence[Parcel] | None = None  # guarded by _changed
        self._outcome: Outcome | None = None  # guarded by _changed
        self._failure: BaseException | None = None  # guarded by _changed
        threading.Thread(target=self._run, name="kvtrail-courier", daemon=True).start()

    def begin(self, parcels: Sequence[Parcel]) -> None:
        """Hand a job to the thread."""
        with self._changed:
            self._job = parcels
            self._changed.notify_all()

    def outcome(self) -> Outcome | None:
        """How the job ended; an error that no transport may raise is raised here, in the main thread."""
        with self._changed:
            if self._failure is not None:
                raise self._failure
            outcome, self._outcome = self._outcome, None
        return outcome

    def wait(self, timeout_s: float) -> None:
        """Wait for the end of the job under way; without one, the whole time."""
        with self._changed:
            self._changed.wait_for(lambda: self._outcome is not None or self._failure is not None, timeout_s)

    def _run(self) -> None:
        """Carry one job after another."""
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._job is not None)
                    job, self._job = self._job or (), None
                outcome = carry(self._transport, job)
                with self._changed:
                    self._outcome = outcome
                    self._changed.notify_all()
        except BaseException as failure:  # noqa: BLE001 - raised again where it ends the process
            with self._changed:
                self._failure = failure
                self._changed.notify_all()


class InlineCourier:
    """Blocks in the calling thread: for tests, and where nothing else has to go on meanwhile."""

    def __init__(self, transport: Transport, sleep: Callable[[float], None]) -> None:
        self._transport = transport
        self._sleep = sleep
        self._outcome: Outcome | None = None

    def begin(self, parcels: Sequence[Parcel]) -> None:
        """Carry the job to its end."""
        self._outcome = carry(self._transport, parcels)

    def outcome(self) -> Outcome | None:
        """How the last job ended."""
        outcome, self._outcome = self._outcome, None
        return outcome

    def wait(self, timeout_s: float) -> None:
        """Sleep, unless there is an outcome to take."""
        if self._outcome is None:
            self._sleep(timeout_s)
