"""The endpoint believes signed, fresh orders in order alone; whatever else comes changes nothing, and is told."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kvtrail_agent.degrade import DegradeReceiver, DegradeSettings
from kvtrail_agent.errors import SettingsInvalid
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.clock import ManualClock
from kvtrail_schema.events import DegradeApplied, DegradeCleared, DegradeRequested, Error
from kvtrail_schema.reasons import ErrorReason

from tests.agent.degrade.orders import ENGINE, NS_S, Kept, Sender, order, secret_file

START_NS = 1_700_000_000 * NS_S


@dataclass
class Scene:
    """A receiver that listens, what its engine was asked, what was told, and somebody who knows its secret."""

    receiver: DegradeReceiver
    controls: Kept
    told: CollectingEmitter
    sender: Sender
    clock: ManualClock

    def refusals(self) -> list[str]:
        """What was told of orders that changed nothing."""
        return [error.text or "" for error in self.told.of(Error) if error.reason is ErrorReason.PERMISSION]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A receiver on a free port."""
    clock, controls, told = ManualClock(wall_ns=START_NS), Kept(), CollectingEmitter()
    path = secret_file(tmp_path, b"a")
    receiver = DegradeReceiver(DegradeSettings(engine=ENGINE, secret_file=path), controls, told.as_emitter(), clock)
    with receiver:
        yield Scene(receiver, controls, told, Sender(receiver.url, path, clock), clock)


def test_an_order_is_carried_out_and_told(scene: Scene) -> None:
    """Asked for, applied and, once released, cleared: each is an event, and names the one that asked."""
    assert 200 == scene.sender.send(order("stop_prefetch", scene.clock, version=1), "msg_1").status_code
    assert ["stop_prefetch"] == scene.controls.in_force
    assert 200 == scene.sender.send(order("stop_prefetch", scene.clock, version=2, is_on=False), "msg_2").status_code

    assert [] == scene.controls.in_force
    assert ["stop_prefetch", "release stop_prefetch"] == [each.text for each in scene.told.of(DegradeRequested)]
    asked, released = scene.told.of(DegradeRequested)
    (applied,), (cleared,) = scene.told.of(DegradeApplied), scene.told.of(DegradeCleared)
    assert (asked.id, "stop_prefetch") == (applied.cause, applied.text)
    assert (released.id, "stop_prefetch") == (cleared.cause, cleared.text)


def test_forged_orders_change_nothing(scene: Scene, tmp_path: Path) -> None:
    """Another secret, no signature, or a body changed on the way: refused, and told."""
    what = order("gpu_only", scene.clock, version=1)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    stranger = Sender(scene.receiver.url, secret_file(elsewhere, b"b"), scene.clock)
    body, headers = scene.sender.signed(what)

    assert 401 == stranger.send(what).status_code
    assert 401 == scene.sender.send_raw(body.replace(b"gpu_only", b"recompute"), headers).status_code
    assert 401 == scene.sender.send_raw(body, {**headers, "webhook-id": "msg_2"}).status_code
    assert 400 == scene.sender.send_raw(body, {}).status_code
    assert [] == scene.controls.in_force
    assert ["degrade: refused, forged"] * 3 + ["degrade: refused, unreadable"] == scene.refusals()


def test_old_orders_change_nothing(scene: Scene) -> None:
    """Sent too long ago, expired, from the future, or before this process listened: a late degrade does not fire."""
    now_s = scene.clock.wall_ns() // NS_S
    before_the_start = scene.sender.signed(order("recompute", scene.clock, version=1), "msg_0", sent_s=now_s - 1)
    expired = order("recompute", scene.clock, version=1, seconds=1)
    scene.clock.advance(100 * NS_S)

    assert 400 == scene.sender.send_raw(*before_the_start).status_code
    assert 400 == scene.sender.send(order("recompute", scene.clock, version=1), sent_s=now_s + 69).status_code
    assert 400 == scene.sender.send(order("recompute", scene.clock, version=1), sent_s=now_s + 106).status_code
    assert 410 == scene.sender.send(expired).status_code
    assert [] == scene.controls.in_force
    assert 4 == len(scene.refusals())


def test_a_replay_is_not_carried_out_again(scene: Scene) -> None:
    """The very same webhook, sent again after its action was released, leaves it released; the same id, filled anew, too."""
    replayed = scene.sender.signed(order("stop_prefetch", scene.clock, version=1), "msg_1")
    scene.sender.send_raw(*replayed)
    scene.sender.send(order("stop_prefetch", scene.clock, version=2, is_on=False), "msg_2")

    assert 200 == scene.sender.send_raw(*replayed).status_code
    assert 409 == scene.sender.send(order("stop_prefetch", scene.clock, version=9), "msg_1").status_code
    assert [] == scene.controls.in_force
    assert {"seen": 1, "out_of_order": 1} == scene.receiver.statistics().refused


def test_a_reordered_order_changes_nothing(scene: Scene) -> None:
    """The release was ordered later and came first: the order before it is refused when it comes."""
    late = scene.sender.signed(order("stop_prefetch", scene.clock, version=1), "msg_1")
    scene.sender.send(order("stop_prefetch", scene.clock, version=2, is_on=False), "msg_2")

    assert 409 == scene.sender.send_raw(*late).status_code
    assert [] == scene.controls.in_force
    assert ["degrade: refused, out_of_order, applied stop_prefetch v1"] == scene.refusals()


def test_orders_to_another_engine_change_nothing(scene: Scene) -> None:
    """Two engines may share a secret; neither carries out what the other was asked."""
    assert 421 == scene.sender.send(order("gpu_only", scene.clock, version=1, engine="other")).status_code
    assert [] == scene.controls.in_force


def test_an_action_ends_by_itself(scene: Scene) -> None:
    """A collector that is gone leaves no engine degraded; one that orders anew makes it last, and that is no second event."""
    scene.sender.send(order("stop_prefetch", scene.clock, version=1, seconds=60), "msg_1")
    scene.clock.advance(50 * NS_S)
    scene.sender.send(order("stop_prefetch", scene.clock, version=2, seconds=60), "msg_2")
    scene.clock.advance(50 * NS_S)
    scene.receiver._expire()
    assert ["stop_prefetch"] == scene.controls.in_force

    scene.clock.advance(11 * NS_S)
    scene.receiver._expire()

    assert [] == scene.controls.in_force
    assert (1, 1) == (len(scene.told.of(DegradeApplied)), len(scene.told.of(DegradeCleared)))


def test_a_step_of_the_wall_clock_does_not_prolong_an_action(scene: Scene) -> None:
    """How long an action lasts is measured by the monotonic clock."""
    scene.sender.send(order("stop_prefetch", scene.clock, version=1, seconds=60), "msg_1")
    scene.clock.step_wall(-3_600 * NS_S)
    scene.clock.advance(61 * NS_S)
    scene.receiver._expire()

    assert [] == scene.controls.in_force


def test_what_an_engine_cannot_do_is_refused_and_may_come_again(scene: Scene) -> None:
    """A tier that is not there; and an engine that did not come to it hears the same order again."""
    assert 422 == scene.sender.send(order("disable_tier(remote)", scene.clock, version=1), "msg_1").status_code
    scene.controls.is_stuck = True
    assert 503 == scene.sender.send(order("recompute", scene.clock, version=2), "msg_2").status_code
    scene.controls.is_stuck = False

    assert 200 == scene.sender.send(order("recompute", scene.clock, version=2), "msg_2").status_code
    assert ["recompute"] == scene.controls.in_force


def test_what_an_engine_did_too_late_ends_all_the_same(scene: Scene) -> None:
    """Nobody heard that it was applied: it ends with its time even so, and by a release before that."""
    scene.controls.is_late = True
    assert 503 == scene.sender.send(order("gpu_only", scene.clock, version=1, seconds=60), "msg_1").status_code
    assert 503 == scene.sender.send(order("recompute", scene.clock, version=2, seconds=60), "msg_2").status_code
    assert ["gpu_only", "recompute"] == scene.controls.in_force

    assert 200 == scene.sender.send(order("gpu_only", scene.clock, version=3, is_on=False), "msg_3").status_code
    assert ["recompute"] == scene.controls.in_force
    scene.clock.advance(61 * NS_S)
    scene.receiver._expire()
    assert [] == scene.controls.in_force


def test_a_release_reaches_the_engine_whatever_is_known(scene: Scene) -> None:
    """What was applied without this endpoint is ended by an order, too."""
    scene.controls.in_force.append("gpu_only")

    assert 200 == scene.sender.send(order("gpu_only", scene.clock, version=1, is_on=False), "msg_1").status_code
    assert [] == scene.controls.in_force


def test_an_action_that_cannot_be_ended_holds_up_no_other(scene: Scene) -> None:
    """A defect in an engine's controls ends neither the thread nor what was asked for after; it is tried again."""
    for version, text in enumerate(("gpu_only", "stop_prefetch"), start=1):
        scene.sender.send(order(text, scene.clock, version=version, seconds=60), f"msg_{version}")
    scene.controls.broken = "gpu_only"
    scene.clock.advance(61 * NS_S)
    scene.receiver._expire()
    assert ["gpu_only"] == scene.controls.in_force

    scene.controls.broken = None
    scene.receiver._expire()
    assert [] == scene.controls.in_force


def test_secrets_are_rotated_while_it_runs(scene: Scene, tmp_path: Path) -> None:
    """With both secrets in the file the old one and the new one hold; with the new one alone, the old one no longer."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    before, after = (
        Sender(scene.receiver.url, secret_file(where, key), scene.clock) for where, key in ((old, b"a"), (new, b"c"))
    )

    secret_file(tmp_path, b"c", b"a")
    assert 200 == before.send(order("recompute", scene.clock, version=1), "msg_1").status_code
    assert 200 == after.send(order("recompute", scene.clock, version=2), "msg_2").status_code
    secret_file(tmp_path, b"c")
    assert 401 == before.send(order("recompute", scene.clock, version=3), "msg_3").status_code
    assert 200 == after.send(order("recompute", scene.clock, version=3), "msg_3").status_code


def test_a_flood_of_forgeries_is_not_a_flood_of_events(scene: Scene) -> None:
    """All are counted; told are thirty a minute."""
    headers = {"webhook-id": "msg_1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"}
    for _ in range(40):
        scene.sender.send_raw(b"{}", headers)

    assert {"forged": 40} == scene.receiver.statistics().refused
    assert 30 == len(scene.refusals())


def test_a_slow_caller_holds_nothing_up(scene: Scene) -> None:
    """Somebody who connects and says nothing keeps no order waiting, and no action from ending."""
    host, port = scene.receiver.url.removeprefix("http://").split("/")[0].split(":")
    with socket.create_connection((host, int(port))):
        assert 200 == scene.sender.send(order("recompute", scene.clock, version=1)).status_code


def test_bodies_are_bounded(scene: Scene) -> None:
    """A body over the bound is not read."""
    assert 413 == scene.sender.send_raw(b"x" * 20_000, {}).status_code


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "engine.example"])  # noqa: S104 - that it is refused is the point
def test_strangers_cannot_reach_it_in_clear(host: str, tmp_path: Path) -> None:
    """Any address but loopback is refused before anything listens."""
    settings = DegradeSettings(engine=ENGINE, secret_file=secret_file(tmp_path, b"a"), host=host)

    with pytest.raises(SettingsInvalid, match="in clear"):
        DegradeReceiver(settings, Kept(), CollectingEmitter().as_emitter())


def test_secrets_that_others_can_read_are_refused(tmp_path: Path) -> None:
    """A file that is open to others is no secret."""
    path = secret_file(tmp_path, b"a")
    path.chmod(0o644)

    with pytest.raises(SettingsInvalid, match="chmod 600"):
        DegradeReceiver(DegradeSettings(engine=ENGINE, secret_file=path), Kept(), CollectingEmitter().as_emitter())
