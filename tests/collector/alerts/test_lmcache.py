"""LMCache as a target: tiers are bypassed by its own controls, before a server that answers in the form that it documents."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from kvtrail_collector.alerts.attempt import Outcome
from kvtrail_collector.alerts.bodies import order_body
from kvtrail_collector.alerts.file import load_alerts
from kvtrail_collector.alerts.lmcache import can
from kvtrail_collector.alerts.post import make_post
from kvtrail_collector.alerts.targets import Form, Target
from kvtrail_collector.errors import SettingsInvalid
from kvtrail_collector.settings import Settings
from kvtrail_collector.store import MEMORY
from kvtrail_collector.testing import running_collector
from kvtrail_schema.degrade import DegradeOrder, Desired, parse_action
from kvtrail_schema.webhooks import Envelope

from tests.agent.degrade.orders import ENGINE
from tests.collector.alerts.lmcache_server import Bypasses, lmcache_server
from tests.collector.alerts.stories import until
from tests.collector.frames import batch

ALL = ("LocalCPUBackend", "LocalDiskBackend", "RemoteBackend")


def post(server: Bypasses, text: str, state: Desired = Desired.APPLIED) -> Outcome:
    """One attempt at an order."""
    order = DegradeOrder(ENGINE, parse_action(text), state, 1, 2**62, "a-rule")
    target = Target(name="lmcache", url=server.url, form=Form.LMCACHE, timeout_s=5.0)
    return make_post()(target, Envelope("msg_1", 1), order_body(order, 1)).outcome


def test_tiers_are_bypassed_and_used_again() -> None:
    """One by its name there, or all of them; a release undoes it, and each may be asked for again."""
    with lmcache_server(*ALL) as server:
        assert [Outcome.DELIVERED] * 2 == [post(server, "disable_tier(nvme)") for _ in range(2)]
        assert ["LocalDiskBackend"] == server.bypassed
        assert Outcome.DELIVERED is post(server, "gpu_only")
        assert set(ALL) == set(server.bypassed)
        assert Outcome.DELIVERED is post(server, "gpu_only", Desired.RELEASED)
        assert [] == server.bypassed


def test_what_it_has_not_is_refused_and_what_is_not_ready_is_tried_again() -> None:
    """A backend that is not there will not come; an engine that starts will."""
    with lmcache_server("LocalCPUBackend") as server:
        assert Outcome.REFUSED is post(server, "disable_tier(remote)")
        server.is_ready = False
        assert Outcome.AGAIN is post(server, "disable_tier(host)")


@pytest.mark.parametrize(("text", "is_so"), [("disable_tier(host)", True), ("gpu_only", True), ("stop_prefetch", False)])
def test_it_is_asked_for_what_it_can(text: str, is_so: bool) -> None:
    """It has no control of what is fetched ahead."""
    assert is_so is can(parse_action(text))


def test_a_wish_reaches_it(tmp_path: Path) -> None:
    """From a person's wish to its own list; what it cannot do is refused before, and nobody waits for events of it."""
    with lmcache_server(*ALL) as server:
        alerts = tmp_path / "alerts.toml"
        alerts.write_text(f'[[target]]\nname = "lmcache"\nurl = "{server.url}"\nform = "lmcache"\n', encoding="utf-8")
        with running_collector(Settings(store=MEMORY, port=0, alerts_file=str(alerts))) as running:
            running.store.submit(batch([1], engine=ENGINE)).result(10)
            ask = httpx.Client(base_url=running.url, trust_env=False)
            wish = {"engine": ENGINE, "action": "disable_tier(nvme)", "seconds": 60}
            with ask:
                assert ask.post("/v1/actions/request", json=wish).json()["changed"]
                until(lambda: server.bypassed == ["LocalDiskBackend"])
                assert 422 == ask.post("/v1/actions/request", json={**wish, "action": "stop_prefetch"}).status_code
                assert ask.post("/v1/actions/release", json=wish).json()["changed"]
                until(lambda: server.bypassed == [])


def test_its_url_has_no_path(tmp_path: Path) -> None:
    """The paths are ours to add."""
    alerts = tmp_path / "alerts.toml"
    alerts.write_text('[[target]]\nname = "l"\nurl = "http://127.0.0.1:6999/bypass"\nform = "lmcache"\n', encoding="utf-8")

    with pytest.raises(SettingsInvalid, match="without a path"):
        load_alerts(alerts)
