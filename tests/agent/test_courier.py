"""Couriers: which frames of a job are acknowledged, whatever happens in its middle, and who hears of a fault."""

import time
from collections.abc import Callable

import pytest
from kvtrail_agent.courier import Courier, InlineCourier, Outcome, ThreadCourier, Verdict
from kvtrail_agent.errors import BatchRejected, TransportError, TransportUnavailable
from kvtrail_agent.parcel import Parcel
from kvtrail_agent.testing import RecordingTransport
from kvtrail_agent.transports import Transport
from kvtrail_schema.batch import BatchHeader

from tests.agent.frames import frame_of
from tests.agent.waiting import wait_for


class ScriptedTransport(RecordingTransport):
    """Fails at the send of a number of frame, or at the flush."""

    def __init__(self, *, at_send: dict[int, Exception] | None = None, at_flush: list[TransportError] | None = None) -> None:
        super().__init__()
        self._at_send = at_send or {}
        self._at_flush = at_flush or []

    def send(self, frame: bytes, header: BatchHeader) -> None:
        """Keep a frame, or fail at it."""
        if header.first_seq in self._at_send:
            raise self._at_send[header.first_seq]
        super().send(frame, header)

    def flush(self, timeout_s: float) -> None:
        """Fail as often as it is told to."""
        if self._at_flush:
            raise self._at_flush.pop(0)


def parcels(count: int) -> list[Parcel]:
    """Frames of one event each, from seq 1 on."""
    return [Parcel(*frame_of(seq, 1)) for seq in range(1, count + 1)]


def outcome_of(courier: Courier, count: int) -> Outcome:
    """Carry so many frames."""
    found: list[Outcome] = []
    courier.begin(parcels(count))
    wait_for(lambda: found.append(outcome) if (outcome := courier.outcome()) else found, "an outcome")
    return found[0]


def inline(transport: Transport) -> Courier:
    """A courier that blocks here."""
    return InlineCourier(transport, time.sleep)


COURIERS: dict[str, Callable[[Transport], Courier]] = {"thread": ThreadCourier, "inline": inline}
AWAY, ODD = TransportUnavailable("away"), BatchRejected("odd")


@pytest.mark.parametrize("kind", COURIERS)
@pytest.mark.parametrize(
    ("transport", "count", "acknowledged", "verdict"),
    [
        (ScriptedTransport(), 3, 3, Verdict.DELIVERED),
        (ScriptedTransport(at_send={2: AWAY}), 3, 0, Verdict.UNAVAILABLE),
        (ScriptedTransport(at_send={2: ODD}), 3, 1, Verdict.REJECTED),
        (ScriptedTransport(at_send={1: ODD}), 1, 0, Verdict.REJECTED),
    ],
)
def test_outcomes(kind: str, transport: ScriptedTransport, count: int, acknowledged: int, verdict: Verdict) -> None:
    """What came before a rejected frame is acknowledged; of an unavailable transport nothing is known."""
    outcome = outcome_of(COURIERS[kind](transport), count)

    assert (acknowledged, verdict) == (outcome.acknowledged, outcome.verdict)


@pytest.mark.parametrize(("count", "verdict"), [(1, Verdict.REJECTED), (3, Verdict.UNAVAILABLE)])
def test_a_rejection_at_the_flush_is_of_the_one_frame(count: int, verdict: Verdict) -> None:
    """Of several frames nobody knows which one was refused: none is given up, and they are sent again, one by one."""
    outcome = outcome_of(InlineCourier(ScriptedTransport(at_flush=[ODD]), time.sleep), count)

    assert (0, verdict) == (outcome.acknowledged, outcome.verdict)


def test_a_rejection_after_which_the_flush_fails_acknowledges_nothing() -> None:
    """What was sent before the rejected frame may be lost: it is sent again."""
    transport = ScriptedTransport(at_send={3: ODD}, at_flush=[AWAY])
    outcome = outcome_of(InlineCourier(transport, time.sleep), 3)

    assert (0, Verdict.UNAVAILABLE) == (outcome.acknowledged, outcome.verdict)


def test_a_fault_in_the_thread_is_heard_in_the_main_one() -> None:
    """An error that no transport may raise ends the shipper loudly, and does not leave it waiting for ever."""
    courier = ThreadCourier(ScriptedTransport(at_send={1: ZeroDivisionError("a fault")}))

    with pytest.raises(ZeroDivisionError):
        outcome_of(courier, 1)
