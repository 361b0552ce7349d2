"""From a storm of prefetches to a changed engine: a real engine, recorder, collector, webhook and endpoint."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import msgspec
import pytest
from kvtrail_agent.degrade import DegradeReceiver, DegradeSettings
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.settings import AgentSettings
from kvtrail_collector.alerts.shapes import Alerts
from kvtrail_collector.settings import Settings
from kvtrail_collector.store import MEMORY
from kvtrail_collector.testing import running_collector
from kvtrail_engine.degrade_controls import EngineControls
from kvtrail_engine.engine import Engine
from kvtrail_engine.proof import settle, sink
from kvtrail_engine.settings import PrefetchSettings, TierSettings
from kvtrail_schema.enums import Tier

from tests.agent.degrade.orders import secret_file
from tests.engine.engines import ask, tiny

ENGINE = "stormy"
DOCUMENTS = range(40)
RULES = """
[[rule]]
name = "prefetch-waste"
measure = "prefetch_waste_share"
raise = 0.5
clear = 0.3
window_s = 2
least = 32
for_s = 0.5
hold_s = 1.5
action = "stop_prefetch"

[[rule]]
name = "prefetch-unused"
measure = "prefetch_unused_share"
raise = 0.9
clear = 0.6
is_on = false

[[target]]
name = "agent"
url = "{url}"
secret_file = "{secret}"
timeout_s = 5.0
"""


class Storm:
    """Announces sessions that never come, again and again, until it is told to stop; each is superseded by the next."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="test-storm", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        """Turn after turn."""
        turn = 0
        while not self._stop.wait(0.05):
            self._engine.hint("session", ask(DOCUMENTS[turn % len(DOCUMENTS)]), 2_000_000_000)
            turn += 1


@dataclass
class Scene:
    """A recorded engine that takes orders, and the collector that it tells everything."""

    engine: Engine
    controls: EngineControls
    url: str

    def alerts(self) -> Alerts:
        """What the collector says."""
        answer = httpx.get(f"{self.url}/v1/alerts", trust_env=False, timeout=10)
        return msgspec.json.decode(answer.raise_for_status().content, type=Alerts)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """All parts, on free ports."""
    prefetch = PrefetchSettings(window=16, interval_ns=1_000_000, host_share=1.0, gpu_reserve_slots=1000)
    secret = secret_file(tmp_path, b"a")
    degrade = DegradeSettings(engine=ENGINE, secret_file=secret, port=_free_port())
    alerts = tmp_path / "alerts.toml"
    url = f"http://127.0.0.1:{degrade.port}/v1/degrade"
    alerts.write_text(RULES.format(url=url, secret=secret), encoding="utf-8")
    with ExitStack() as stack:
        collector = stack.enter_context(running_collector(Settings(store=MEMORY, port=0, alerts_file=str(alerts))))
        recorder = Recorder.start(
            AgentSettings(
                engine=ENGINE,
                transport=collector.url,
                ring_dir=tmp_path / "rings",
                spool_dir=tmp_path / "spool",
                flush_interval_ms=100,
            )
        )
        stack.callback(recorder.close, 30.0)
        given = tiny(tmp_path / "tiers", prefetch=prefetch, host=TierSettings(slots=400))
        engine = stack.enter_context(Engine(given, [recorder]))
        controls = EngineControls(engine)
        stack.enter_context(DegradeReceiver(degrade, controls, recorder))
        yield Scene(engine, controls, collector.url)


def _free_port() -> int:
    """A port that was free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(is_so: Callable[[], bool], seconds: float) -> float:
    """Wait for something; how long that took."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < seconds, "it did not happen"
        time.sleep(0.1)
    return time.monotonic() - began


@pytest.mark.alone
def test_a_storm_stops_prefetching_and_its_end_releases_it(scene: Scene) -> None:
    """Within ten seconds the engine has applied it, events show the effect, and once it is safe it is released."""
    for number in DOCUMENTS:
        scene.engine.submit(ask(number)).result(30)
        settle(scene.engine)
        sink(scene.engine, Tier.NVME)
    scene.engine.ask(lambda: scene.engine.maintenance.clear(Tier.GPU))
    with Storm(scene.engine):
        until(lambda: scene.controls.in_force() == ("stop_prefetch",), 10)
        until(lambda: [one.effect for one in scene.alerts().actions] == ["applied"], 10)
    until(lambda: scene.controls.in_force() == (), 20)
    happened = [row.what for row in reversed(scene.alerts().audit) if row.what not in {"renewed", "delivered"}]

    assert ["fired", "requested", "applied", "cleared", "released"] == happened[:5]
    assert "stalled" not in happened
