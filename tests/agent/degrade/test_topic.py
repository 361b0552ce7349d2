"""Orders by a real Kafka topic are believed as those by HTTP are: signed, fresh, in order, once; all else changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from kvtrail_agent.degrade import DegradeReceiver, DegradeSettings
from kvtrail_agent.errors import SettingsInvalid
from kvtrail_collector.alerts.attempt import Outcome
from kvtrail_collector.alerts.post import make_post
from kvtrail_collector.alerts.post_topic import post_to_topic
from kvtrail_collector.alerts.targets import Target
from kvtrail_collector.alerts.targets_topic import topic_address
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.degrade import ORDER_TYPE, DegradeOrder, OrderBody
from kvtrail_schema.events import Error
from kvtrail_schema.reasons import ErrorReason
from kvtrail_schema.webhooks import Envelope, read_secrets, sign

from tests.agent.degrade.orders import ENGINE, NS_S, Kept, order, secret_file
from tests.broker import new_topic

CLOCK = SystemClock()
PATIENCE_S = 10.0


@dataclass
class Scene:
    """A receiver that hears a topic alone, what its engine was asked, what was told, and somebody who knows its secret."""

    receiver: DegradeReceiver
    controls: Kept
    told: CollectingEmitter
    url: str
    secrets: Path

    def put(self, what: DegradeOrder, name: str, *, secrets: Path | None = None, sent_s: int | None = None) -> None:
        """An order, signed as the collector signs it, at the end of the topic."""
        body = msgspec.json.encode(OrderBody(ORDER_TYPE, "2026-01-01T00:00:00Z", what))
        at_s = CLOCK.wall_ns() // NS_S if sent_s is None else sent_s
        signed = sign(read_secrets(secrets or self.secrets), Envelope(name, at_s), body)

        assert Outcome.DELIVERED is post_to_topic(topic_address(self.url, ""), signed, body, PATIENCE_S).outcome

    def refusals(self) -> list[str]:
        """What was told of orders that changed nothing."""
        return [error.text or "" for error in self.told.of(Error) if error.reason is ErrorReason.PERMISSION]


@pytest.fixture
def scene(bootstrap: str, tmp_path: Path) -> Iterator[Scene]:
    """A receiver that listens nowhere, on a topic of its own with two partitions."""
    url = f"kafka://{bootstrap}/{new_topic(bootstrap, 2)}"
    controls, told, path = Kept(), CollectingEmitter(), secret_file(tmp_path, b"a")
    settings = DegradeSettings(engine=ENGINE, secret_file=path, listens=False, topic=url)
    with DegradeReceiver(settings, controls, told.as_emitter()) as receiver:
        assert receiver.wait_until_heard(PATIENCE_S)
        yield Scene(receiver, controls, told, url, path)


def until(is_so: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s, "it did not happen"
        time.sleep(0.02)


def test_orders_are_carried_out_in_order_and_once(scene: Scene) -> None:
    """Applied and released; what comes again, or came too late, leaves it released, and is audited where it is no replay."""
    applied, released = (order("stop_prefetch", CLOCK, version=version, is_on=version == 1) for version in (1, 2))
    scene.put(applied, "msg_1")
    until(lambda: scene.controls.in_force == ["stop_prefetch"])
    scene.put(released, "msg_2")
    until(lambda: scene.controls.in_force == [])
    scene.put(applied, "msg_1")
    scene.put(order("recompute", CLOCK, version=1), "msg_3")
    until(lambda: sum(scene.receiver.statistics().refused.values()) == 2)

    assert [] == scene.controls.in_force
    assert {"seen": 1, "out_of_order": 1} == scene.receiver.statistics().refused
    assert ["degrade: refused, out_of_order, applied recompute v1"] == scene.refusals()


def test_what_is_forged_old_or_anothers_changes_nothing(scene: Scene, tmp_path: Path) -> None:
    """Another secret, an hour ago, expired, no order at all: audited. What is for another engine is not even looked at."""
    (tmp_path / "elsewhere").mkdir()
    now_s = CLOCK.wall_ns() // NS_S
    scene.put(order("gpu_only", CLOCK, version=1), "msg_1", secrets=secret_file(tmp_path / "elsewhere", b"b"))
    scene.put(order("gpu_only", CLOCK, version=2), "msg_2", sent_s=now_s - 3_600)
    scene.put(order("gpu_only", CLOCK, version=3, seconds=-1), "msg_3")
    scene.put(order("gpu_only", CLOCK, version=4, engine="other"), "msg_4")
    scene.put(order("stop_prefetch", CLOCK, version=5), "msg_5")
    until(lambda: scene.controls.in_force == ["stop_prefetch"])

    assert {"forged": 1, "old": 1, "expired": 1} == scene.receiver.statistics().refused
    assert ["forged", "old", "expired"] == [text.split(", ")[1] for text in scene.refusals()]


def test_an_engine_that_did_not_come_to_it_is_asked_again(scene: Scene) -> None:
    """A topic says nothing back, so the receiver itself tries until the order is old; those behind it keep their turn."""
    scene.controls.is_stuck = True
    scene.put(order("recompute", CLOCK, version=1), "msg_1")
    scene.put(order("stop_prefetch", CLOCK, version=2), "msg_2")
    until(lambda: len(scene.controls.asked) >= 2)
    assert [] == scene.controls.in_force
    assert {"recompute"} == set(scene.controls.asked)
    scene.controls.is_stuck = False
    until(lambda: scene.controls.in_force == ["recompute", "stop_prefetch"])


def test_a_collector_sends_to_a_topic_as_to_a_server(scene: Scene) -> None:
    """The same target, but for its address; a topic that is not there is tried again."""
    body = msgspec.json.encode(OrderBody(ORDER_TYPE, "2026-01-01T00:00:00Z", order("gpu_only", CLOCK, version=1)))
    envelope = Envelope("msg_1", CLOCK.wall_ns() // NS_S)
    here, nowhere = (
        Target(name="topic", url=url, secret_file=str(scene.secrets), timeout_s=seconds)
        for url, seconds in ((scene.url, PATIENCE_S), (f"{scene.url}-not", 1.0))
    )

    assert Outcome.DELIVERED is make_post()(here, envelope, body).outcome
    until(lambda: scene.controls.in_force == ["gpu_only"])
    assert Outcome.AGAIN is make_post()(nowhere, envelope, body).outcome


def test_orders_are_taken_somewhere(tmp_path: Path) -> None:
    """Neither endpoint nor topic is a mistake; so is an address that is none."""
    path = secret_file(tmp_path, b"a")
    for topic, why in (("", "no endpoint and no topic"), ("kafka://nowhere", "give brokers and topic")):
        settings = DegradeSettings(engine=ENGINE, secret_file=path, listens=False, topic=topic)
        with pytest.raises(SettingsInvalid, match=why):
            DegradeReceiver(settings, Kept(), CollectingEmitter().as_emitter())
