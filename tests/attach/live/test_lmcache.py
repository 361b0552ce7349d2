"""LMCache's events live: by HTTP, from its topic, and from the bus inside its server."""

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import msgspec
import pytest
from kafka import KafkaProducer
from kvtrail_agent.attach.lmcache import Listener, listen_to_every_bus
from kvtrail_agent.attach.lmcache_http import LmcacheReceiver, LmcacheServer
from kvtrail_agent.attach.lmcache_kafka import LmcacheTopic
from kvtrail_agent.importers.lmcache_batches import LmcacheBatches
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.events import BlockCreated, Evicted, SwapInLoaded, SwapInQueued
from kvtrail_schema.kafka_client import make_client

from tests.attach.importers.cases import LMCACHE, LMCACHE_BUS, SOURCE, lm_batch, lm_entry
from tests.attach.importers.payloads import KEY
from tests.attach.live.engines import Recorded
from tests.broker import new_topic


def test_http(tmp_path: Path) -> None:
    """A coordinator's answer to each request: how many batches were new, how many came twice; bad bodies are refused."""
    recorded, stop = Recorded(tmp_path), threading.Event()
    server = LmcacheServer("127.0.0.1", 0, LmcacheReceiver(LmcacheBatches(SOURCE), recorded.rows))
    thread = threading.Thread(target=server.run, args=(stop,), name="test-lmcache")
    thread.start()
    body = msgspec.json.encode(LMCACHE.records[0])
    with httpx.Client(base_url=server.url) as client:
        answers = [client.post("/events", content=body).json() for _ in range(2)]
        statuses = [
            client.post("/events", content=b"{no json").status_code,
            client.post("/other", content=b"{}").status_code,
            client.get("/healthz").status_code,
        ]
    stop.set()
    thread.join(20)

    assert [{"applied": 2, "duplicates": 0, "stale": 0}, {"applied": 0, "duplicates": 2, "stale": 0}] == answers
    assert [422, 404, 200] == statuses
    assert [BlockCreated, BlockCreated, Evicted] == [
        type(event) for event in recorded.transport.events if isinstance(event, BlockCreated | Evicted)
    ]


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    """Write records as LMCache does, under the name of its instance."""
    producer = make_client(KafkaProducer, {"bootstrap_servers": bootstrap})
    for value in values:
        producer.send(topic, value, key=b"lm-a")
    producer.flush(20)
    producer.close()


def test_topic(tmp_path: Path, bootstrap: str) -> None:
    """What a real broker holds and what comes later is recorded once; what is no JSON is counted and passed over."""
    recorded, stop, topic = Recorded(tmp_path), threading.Event(), new_topic(bootstrap)
    produce(bootstrap, topic, [msgspec.json.encode(LMCACHE.records[0]), b"{no json"])
    followed = LmcacheTopic(bootstrap, topic, {}, from_start=True)
    thread = threading.Thread(
        target=followed.run, args=(LmcacheBatches(SOURCE), recorded.rows, stop), name="test-lmcache-topic"
    )
    thread.start()
    while recorded.rows.rows < 4:
        time.sleep(0.02)
    produce(bootstrap, topic, [msgspec.json.encode(lm_batch(4, "store", lm_entry("00cc")))])
    while recorded.rows.rows < 5:
        time.sleep(0.02)
    stop.set()
    thread.join(20)

    assert 3 == sum(isinstance(event, BlockCreated) for event in recorded.transport.events)
    assert (1, 1) == (recorded.rows.quarantined, recorded.rows.lost)


class Kind(Enum):
    """Types of events, as LMCache's `EventType` has them."""

    LOAD = "l2.load_task.submitted"
    LOADED = "l2.load_task.completed"
    LATER = "zz.of.a.later.version"


class Bus:
    """LMCache's bus as a subscriber sees it: callbacks by type, called on its thread, their errors logged there."""

    def __init__(self) -> None:
        self.callbacks: defaultdict[Kind, list[Callable[[Any], None]]] = defaultdict(list)

    def subscribe(self, kind: Kind, callback: Callable[[Any], None]) -> None:
        """Ask for a type."""
        self.callbacks[kind].append(callback)

    def publish(self, kind: Kind, metadata: object, timestamp: object = 1_795_975_516.5) -> None:
        """Tell everybody."""
        event = SimpleNamespace(event_type=kind, timestamp=timestamp, metadata=metadata, session_id="")
        for callback in self.callbacks[kind]:
            callback(event)


@pytest.fixture
def lmcache(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The two modules of LMCache that a listener touches."""
    events, buses = ModuleType("event"), ModuleType("event_bus")
    events.EventType = Kind  # type: ignore[attr-defined]  # a module of this test
    buses.init_event_bus = Bus  # type: ignore[attr-defined]  # as above
    for name in ("lmcache", "lmcache.v1", "lmcache.v1.mp_observability"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "lmcache.v1.mp_observability.event", events)
    monkeypatch.setitem(sys.modules, "lmcache.v1.mp_observability.event_bus", buses)
    return buses


def test_bus(tmp_path: Path, lmcache: ModuleType) -> None:
    """Every event of a bus that is made from now on is decoded off its thread; a broken one harms neither bus nor the next."""
    recorded = Recorded(tmp_path)
    listeners: list[Listener] = []

    def start(bus: Any) -> None:
        listeners.append(Listener(recorded.rows, KEY, SystemClock()))
        listeners[0].subscribe(bus)

    listen_to_every_bus(start)
    bus = lmcache.init_event_bus()
    load, loaded = LMCACHE_BUS.records[1]["metadata"], LMCACHE_BUS.records[2]["metadata"]
    bus.publish(Kind.LOAD, load)
    bus.publish(Kind.LOAD, object(), "no time")
    bus.publish(Kind.LATER, {"count": 3})
    bus.publish(Kind.LOADED, loaded)
    listeners[0].close()

    assert [SwapInQueued, SwapInLoaded] == [
        type(event) for event in recorded.transport.events if isinstance(event, SwapInQueued | SwapInLoaded)
    ]
    assert [1, 0, 0] == [recorded.rows.quarantined, listeners[0].dropped, listeners[0].guard.errors]


def test_a_bus_of_another_version(lmcache: ModuleType) -> None:
    """A bus that has not what a listener needs runs without one: LMCache never hears of it."""

    def start(bus: Any) -> None:
        bus.subscribe_to_all()

    listen_to_every_bus(start)

    assert isinstance(lmcache.init_event_bus(), Bus)
