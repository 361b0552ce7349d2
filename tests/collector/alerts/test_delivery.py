"""Webhooks arrive in order, once their target is there, signed anew; or they are given up, and that is told."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from kvtrail_collector.alerts.attempt import Attempt, Outcome
from kvtrail_collector.alerts.delivery import Delivery, Ended, Outgoing
from kvtrail_collector.alerts.dispatch import Dispatch
from kvtrail_collector.alerts.targets import Form, Target
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.degrade import DegradeOrder, Desired, parse_action
from kvtrail_schema.webhooks import Envelope

from tests.collector.alerts.stories import until

NS_S = 1_000_000_000
TARGET = Target(name="people", url="http://127.0.0.1:9/", form=Form.ALERTS)
CLOCK = SystemClock()


@dataclass
class Line:
    """The way out, as a list of answers: by name of webhook how often it says "again", and what it says then."""

    again: dict[str, int] = field(default_factory=dict)
    last: Outcome = Outcome.DELIVERED
    seen: list[Envelope] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)

    def __call__(self, target: Target, envelope: Envelope, body: bytes) -> Attempt:
        """One attempt."""
        self.seen.append(envelope)
        left = self.again.get(envelope.id, 0)
        self.again[envelope.id] = left - 1
        return Attempt(Outcome.AGAIN if left > 0 else self.last, "said so")

    def delivered(self) -> list[str]:
        """What arrived, in order."""
        return [one.item.id for one in self.ended if one.outcome is Outcome.DELIVERED]


def outgoing(name: str, engine: str = "chat", subject: str = "", seconds: float = 30.0) -> Outgoing:
    """A webhook that may arrive for so long."""
    return Outgoing(name, engine, subject, b"{}", CLOCK.wall_ns() + int(seconds * NS_S))


def test_order_is_kept_for_each_engine() -> None:
    """A head that fails holds up those behind it, and nobody of another engine."""
    line = Line(again={"a1": 3})
    with Delivery(line, CLOCK, line.ended.append) as delivery:
        for item in (outgoing("a1", "a"), outgoing("a2", "a"), outgoing("b1", "b")):
            delivery.put(TARGET, item)
        until(lambda: len(line.ended) == 3)
        until(lambda: not delivery._queues)

    arrived = line.delivered()
    assert ["a1", "a2"] == [name for name in arrived if name.startswith("a")]
    assert "b1" == arrived[0]


def test_every_attempt_has_the_same_id() -> None:
    """So that a receiver knows what it has seen."""
    line = Line(again={"a1": 2})
    with Delivery(line, CLOCK, line.ended.append) as delivery:
        delivery.put(TARGET, outgoing("a1"))
        until(lambda: len(line.ended) == 1)

    assert ["a1"] * 3 == [envelope.id for envelope in line.seen]
    assert 3 == line.ended[0].attempts


def test_what_is_too_late_is_given_up_and_not_sent() -> None:
    """An order whose time is over never arrives; what is behind it does."""
    line = Line(again={"late": 1_000})
    with Delivery(line, CLOCK, line.ended.append) as delivery:
        delivery.put(TARGET, outgoing("late", seconds=0.5))
        delivery.put(TARGET, outgoing("next"))
        until(lambda: len(line.ended) == 2)

    assert ["next"] == line.delivered()
    assert ["too late; last: said so"] == [one.detail for one in line.ended if one.item.id == "late"]


def test_what_is_refused_is_not_tried_again() -> None:
    """A target that will never take it is asked once."""
    line = Line(last=Outcome.REFUSED)
    with Delivery(line, CLOCK, line.ended.append) as delivery:
        delivery.put(TARGET, outgoing("a1"))
        until(lambda: len(line.ended) == 1)

    assert (Outcome.REFUSED, 1) == (line.ended[0].outcome, len(line.seen))


def test_a_newer_word_takes_the_place_of_an_older() -> None:
    """Of two orders about one action that wait, only the newer one is sent."""
    line = Line(again={"head": 3})
    with Delivery(line, CLOCK, line.ended.append) as delivery:
        delivery.put(TARGET, outgoing("head"))
        until(lambda: bool(line.seen))
        delivery.put(TARGET, outgoing("apply", subject="recompute"))
        delivery.put(TARGET, outgoing("release", subject="recompute"))
        until(lambda: len(line.ended) == 3)

    assert ["head", "release"] == line.delivered()


def test_an_order_is_sent_soon_or_not_at_all_but_its_release_to_the_end() -> None:
    """An order is given anew while it is wanted; nobody orders a release anew."""
    now_ns, line = CLOCK.wall_ns(), Line(again={"o1": 1_000, "o2": 1_000})
    names = iter(("o1", "o2"))
    orders = Target(name="agent", url="http://127.0.0.1:9/", secret_file="unread")
    with Delivery(line, CLOCK, line.ended.append) as delivery:
        dispatch = Dispatch([orders], delivery, lambda: next(names))
        for action, state in (("gpu_only", Desired.APPLIED), ("recompute", Desired.RELEASED)):
            order = DegradeOrder("chat", parse_action(action), state, 1, now_ns + 3_600 * NS_S, "a-rule")
            dispatch.order(order, now_ns)

    ends = {one.item.subject: one.item.expires_wall_ns - now_ns for one in line.ended}
    assert {"gpu_only": 10 * NS_S, "recompute": 3_600 * NS_S} == ends


def test_a_target_that_hangs_holds_up_nobody_else() -> None:
    """However many engines' webhooks wait for it, another target's go out."""
    line, is_over = Line(), threading.Event()
    other = Target(name="other", url="http://127.0.0.1:9/", form=Form.ALERTS)

    def post(target: Target, envelope: Envelope, body: bytes) -> Attempt:
        """Hangs for one target."""
        return Attempt(Outcome.AGAIN, str(is_over.wait(20))) if target is TARGET else line(target, envelope, body)

    with Delivery(post, CLOCK, line.ended.append) as delivery:
        for number in range(40):
            delivery.put(TARGET, outgoing(f"w{number}", engine=f"chat-{number}"))
        delivery.put(other, outgoing("b1"))
        until(lambda: line.delivered() == ["b1"])
        is_over.set()


def test_a_queue_is_bounded() -> None:
    """More than fit push out the oldest, which are told."""
    line = Line(again={f"w{number}": 1_000_000 for number in range(300)})
    with Delivery(line, CLOCK, line.ended.append) as delivery:
        for number in range(300):
            delivery.put(TARGET, outgoing(f"w{number}"))
        assert 256 == delivery.waiting()

    assert 300 == len(line.ended)
    assert {"too many wait", "the collector ended"} == {one.detail for one in line.ended}
