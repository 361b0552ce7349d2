"""Drill: the Kafka broker between engine and collector is killed under load, and comes back."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import httpx
from kvtrail_agent.recorder import Recorder
from kvtrail_collector.settings import Settings
from kvtrail_collector.store import MEMORY, Store
from kvtrail_collector.testing import RunningCollector, running_collector
from kvtrail_engine.engine import Engine
from kvtrail_schema.events import RequestArrived

from kvtrail_cli.demo.broker import local_broker
from kvtrail_cli.drill.safety_file import read_store, recorder_settings
from kvtrail_cli.drill.safety_log import EventLog, answer, ask, result_of, small_engine
from kvtrail_cli.drill.safety_shapes import SafetyDrill
from kvtrail_cli.kafka_topic import TopicChoice, made_topic

_PROMPTS: Final = range(8)
_TOPIC: Final = TopicChoice(partitions=2, replicas=1, retention_hours=1, retention_bytes=-1)
_PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.05


def kafka_down(folder: Path) -> SafetyDrill:
    """The broker dies and comes back: the engine goes on as before, what it tells waits, and in the end is stored, once.

    Raises:
        PartMissing: Java or Maven is not installed, or the broker's jars cannot be had.
    """
    log = EventLog()
    with local_broker(folder / "broker") as broker:
        settings = Settings(store=MEMORY, port=0, kafka_bootstrap=broker.bootstrap, kafka_topic=_topic())
        made_topic(settings, _TOPIC)
        transport = f"kafka://{broker.bootstrap}/{settings.kafka_topic}"
        with running_collector(settings) as collector:
            recorder = Recorder.start(recorder_settings(folder / "recorder", transport))
            with Engine(small_engine(folder), [log.as_emitter(), recorder]) as engine:
                before = _answers(engine)
                _until(lambda: _is_ready(collector))
                broker.kill()
                killed_ns = time.monotonic_ns()
                during = _answers(engine)
                is_noticed = _until(lambda: not _is_ready(collector))
                noticed_ns = time.monotonic_ns()
                broker.start()
                after = _answers(engine)
            recorder.close(_PATIENCE_S)
            is_stored = _until(lambda: _stored(collector.store) == recorder.produced)
            stored_ns = time.monotonic_ns()
            log.file = read_store(collector.store, recorder.stream, recorder.produced)
    touched = log.first(RequestArrived, lambda event: event.t_ns > killed_ns)
    found = {
        "every request is answered meanwhile, and answers are the same": before == during == after,
        "the collector says that it hears nothing": is_noticed,
        "then every event is stored, once": is_stored,
    }
    expected = "the engine goes on, nothing is lost, everything is stored once when the broker is back"
    return result_of("kafka-down", expected, found, (touched, noticed_ns, stored_ns), log)


def _topic() -> str:
    """A topic of the drill's own."""
    return f"kvtrail-drill-{secrets.token_hex(4)}"


def _answers(engine: Engine) -> list[tuple[int, ...]]:
    """The answers to the same prompts each time."""
    return [answer(engine, ask(number)).output for number in _PROMPTS]


def _is_ready(collector: RunningCollector) -> bool:
    """Whether the collector says that its sources are heard."""
    return httpx.get(f"{collector.url}/readyz", trust_env=False, timeout=10).is_success


def _stored(store: Store) -> int:
    """How many events of the recorder are stored."""
    return sum(account.stored.size for account in store.accounts().values())


def _until(is_so: Callable[[], bool]) -> bool:
    """Wait for something, a while; whether it came."""
    until_s = time.monotonic() + _PATIENCE_S
    while not is_so() and time.monotonic() < until_s:
        time.sleep(_POLL_S)
    return is_so()
