"""From stored events to a changed engine and back, with a real store, a real webhook, and a real endpoint that takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kvtrail_agent.degrade import DegradeReceiver, DegradeSettings
from kvtrail_collector.alerts.alerter import Alerter
from kvtrail_collector.alerts.audit import last_audit, last_dead
from kvtrail_collector.alerts.effects import Effect
from kvtrail_collector.alerts.file import AlertSettings
from kvtrail_collector.alerts.post import make_post
from kvtrail_collector.alerts.rules import Rule
from kvtrail_collector.alerts.shapes import AuditRow
from kvtrail_collector.alerts.targets import Target
from kvtrail_collector.store import Incoming, Store
from kvtrail_collector.testing import memory_store
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.batch import DecodedBatch
from kvtrail_schema.clock import Clocks, ManualClock
from kvtrail_schema.degrade import parse_action
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import DegradeApplied, Event, PrefetchIssued
from kvtrail_schema.identity import BlockId, PrefetchId

from tests.agent.degrade.orders import Kept, secret_file
from tests.collector.alerts.stories import ENGINE, prefetches, rule, until
from tests.collector.frames import header, table

NS_S = 1_000_000_000
START_NS = 1_700_000_000 * NS_S


@dataclass
class Scene:
    """An alerter that looks when it is told to, and the engine that it orders about. Wall time is monotonic time."""

    alerter: Alerter
    store: Store
    clock: ManualClock
    controls: Kept
    next_seq: int = 1
    ids: list[str] = field(default_factory=list)

    @property
    def second(self) -> int:
        """Now."""
        return self.clock.wall_ns() // NS_S

    def store_events(self, events: Sequence[Event]) -> None:
        """Store what the engine told."""
        seqs = [event.seq for event in events]
        now_ns = self.clock.wall_ns()
        head = header(seqs, engine=ENGINE)
        head = type(head)(
            **{**{name: getattr(head, name) for name in head.__struct_fields__}, "clocks": Clocks(now_ns, now_ns, 1)}
        )
        self.store.submit(Incoming(DecodedBatch(head, table(events)), now_ns)).result(10)
        self.next_seq = seqs[-1] + 1

    def waste(self, *, used: int = 0, wasted: int = 0) -> None:
        """Prefetches that ended now."""
        self.store_events(prefetches(self.second, used=used, wasted=wasted, first_seq=self.next_seq))

    def tell(self, kind: type[Event], **fields: Any) -> None:
        """One event, now."""
        self.store_events([kind(**{"seq": self.next_seq, "t_ns": self.clock.wall_ns(), **fields})])

    def look(self, seconds: float = 1.0) -> None:
        """Let time pass, and look."""
        self.clock.advance(int(seconds * NS_S))
        self.alerter.look()

    def audit(self) -> list[AuditRow]:
        """What happened, oldest first."""
        self.alerter.look()
        self.store.run(lambda _: None).result(10)
        with self.store.read() as cursor:
            return list(reversed(last_audit(cursor, 1_000)))

    def whats(self) -> list[str]:
        """What happened, in words."""
        return [row.what for row in self.audit()]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[Rule], Scene]]:
    """Scenes with one rule and one target."""
    with ExitStack() as stack:

        def build(given: Rule) -> Scene:
            clock, controls, path = ManualClock(START_NS, START_NS), Kept(), secret_file(tmp_path, b"a")
            settings = DegradeSettings(engine=ENGINE, secret_file=path)
            receiver = stack.enter_context(DegradeReceiver(settings, controls, CollectingEmitter().as_emitter(), clock))
            target = Target(name="agent", url=receiver.url, secret_file=str(path), timeout_s=5.0)
            store, ids = stack.enter_context(memory_store()), list[str]()

            def new_id() -> str:
                ids.append(f"msg_{len(ids)}")
                return ids[-1]

            alerter = Alerter(store, clock, AlertSettings((given,), (target,)), post=make_post(), new_id=new_id)
            store.on_commit(alerter.feed.offer)
            stack.enter_context(alerter.delivery)
            return Scene(alerter, store, clock, controls, ids=ids)

        yield build


def test_a_spike_degrades_the_engine_and_its_end_releases_it(make: Callable[[Rule], Scene]) -> None:
    """Waste fires the rule, the engine is asked and does it; once nothing is wasted for the hold time, it is released."""
    scene = make(rule(action="stop_prefetch", hold_s=10.0, for_s=1.0))
    for _ in range(3):
        scene.waste(wasted=50)
        scene.look()
    until(lambda: scene.controls.in_force == ["stop_prefetch"])
    scene.tell(DegradeApplied, text="stop_prefetch")
    for _ in range(18):
        scene.look()
    until(lambda: scene.controls.in_force == [])
    until(lambda: scene.whats().count("delivered") == 2)  # the engine has done it a moment before its answer is heard

    assert ["fired", "requested", "applied", "cleared", "released"] == [each for each in scene.whats() if each != "delivered"]


def test_a_flapping_figure_gives_one_fire_and_one_clear(make: Callable[[Rule], Scene]) -> None:
    """From stored events on, too: one order to apply, one to release, however the figure swings."""
    scene = make(rule(action="stop_prefetch", hold_s=10.0, window_s=1))
    for turn in range(40):
        scene.waste(**{"wasted" if turn % 2 else "used": 50})
        scene.look(0)
        scene.clock.advance(NS_S)
    for _ in range(15):
        scene.look()

    happened = [each for each in scene.whats() if each != "delivered"]
    assert (1, 1, 1, 1) == tuple(happened.count(each) for each in ("fired", "requested", "cleared", "released"))


def test_an_order_without_effect_is_a_stalled_fallback(make: Callable[[Rule], Scene]) -> None:
    """An engine that never says that it applied an order is found out by the clock."""
    scene = make(rule(action="stop_prefetch"))
    scene.waste(wasted=50)
    scene.look()
    for _ in range(12):
        scene.waste(wasted=50)
        scene.look()

    assert ["FALLBACK_STALLED: no degrade_applied within 10 s"] == [
        row.detail for row in scene.audit() if row.what == "stalled"
    ]


def test_an_engine_that_says_so_and_does_not_is_found_out(make: Callable[[Rule], Scene]) -> None:
    """Prefetches that are issued after the action was applied are the proof; those right after it are not."""
    scene = make(rule(action="stop_prefetch", hold_s=60.0))
    scene.waste(wasted=50)
    scene.look()
    scene.tell(DegradeApplied, text="stop_prefetch")
    issued = {"prefetch": PrefetchId(1), "block": BlockId(1), "src": Tier.NVME, "dst": Tier.HOST}
    scene.look()
    scene.tell(PrefetchIssued, **issued)
    scene.look()
    assert [Effect.APPLIED] == [effect for _, effect in scene.alerter.view().in_force]

    scene.look(2)
    scene.tell(PrefetchIssued, **issued)
    scene.look()
    assert [Effect.STALLED] == [effect for _, effect in scene.alerter.view().in_force]


def test_events_of_long_ago_do_not_act(make: Callable[[Rule], Scene]) -> None:
    """A backlog that is read in says nothing about now: no alert, no order."""
    scene = make(rule(action="stop_prefetch"))
    scene.store_events(prefetches(scene.second - 600, wasted=500))
    scene.look()

    assert [] == scene.whats()
    assert [] == scene.ids


def test_a_person_releases_and_asks(make: Callable[[Rule], Scene]) -> None:
    """What a rule wanted is released for as long as its alert fires, and both wishes are in the audit."""
    scene = make(rule(action="stop_prefetch", hold_s=60.0))
    scene.waste(wasted=50)
    scene.look()
    until(lambda: scene.controls.in_force == ["stop_prefetch"])

    assert scene.alerter.release(ENGINE, "stop_prefetch")
    assert not scene.alerter.release(ENGINE, "stop_prefetch")
    until(lambda: scene.controls.in_force == [])
    scene.waste(wasted=50)
    scene.look()
    assert ["fired", "requested", "released_by_hand"] == [each for each in scene.whats() if each != "delivered"]

    asks = [scene.alerter.request(ENGINE, parse_action("stop_prefetch"), 300.0) for _ in range(2)]
    until(lambda: scene.controls.in_force == ["stop_prefetch"])
    released = scene.alerter.release(ENGINE, "stop_prefetch")
    until(lambda: scene.controls.in_force == [])
    assert ([True, False], True) == (asks, released)
    assert scene.alerter.request(ENGINE, parse_action("stop_prefetch"), 300.0)
    until(lambda: scene.controls.in_force == ["stop_prefetch"])
    by_hand = [each for each in scene.whats() if each.endswith("by_hand")]
    assert ["released_by_hand", "requested_by_hand", "released_by_hand", "requested_by_hand"] == by_hand


def test_renewals_drive_nothing_out_of_the_audit(make: Callable[[Rule], Scene]) -> None:
    """An action that goes on for long is ordered anew again and again, and leaves no rows by that."""
    scene = make(rule(action="stop_prefetch", expires_s=10.0))
    for _ in range(20):
        scene.waste(wasted=50)
        scene.tell(DegradeApplied, text="stop_prefetch")
        scene.look()
    until(lambda: scene.alerter.view().webhooks_waiting == 0)

    assert len(scene.ids) > 2
    assert ["applied", "delivered", "fired", "requested"] == sorted(scene.whats())


def test_a_webhook_that_nobody_takes_is_a_dead_letter(make: Callable[[Rule], Scene]) -> None:
    """An order that cannot be delivered in time is given up, written down, and never delivered late."""
    scene = make(rule(action="disable_tier(remote)"))
    scene.waste(wasted=50)
    scene.look()

    def is_dead() -> bool:
        scene.alerter.look()
        with scene.store.read() as cursor:
            return [letter.reason for letter in last_dead(cursor, 10)] == ["422 this engine has no tier remote"]

    until(is_dead)
    assert [] == scene.controls.in_force
