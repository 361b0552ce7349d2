"""A small language for tests of the Kafka source: a topic, what is put into it, and a source that reads it into a store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaProducer
from kvtrail_collector.sources.kafka import KafkaSource
from kvtrail_collector.sources.kafka_settings import KafkaSettings
from kvtrail_collector.store import Store
from kvtrail_schema.batch import Limits
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.kafka_client import make_client
from kvtrail_schema.kafka_options import KafkaOptions

from tests.broker import new_topic

SMALL = Limits(frame_bytes=1 << 20, body_bytes=8 << 20)


@dataclass
class Topic:
    """A topic of the test's own on a real broker."""

    bootstrap: str
    name: str
    producer: KafkaProducer = field(repr=False)

    def put(self, *values: bytes | None, partition: int = 0) -> None:
        """Append records to a partition; they are there when this returns."""
        sent = [self.producer.send(self.name, value=value, key=b"engine", partition=partition) for value in values]
        for one in sent:
            one.get(20)

    def settings(self, dead_letters: str = "") -> KafkaSettings:
        """What a collector is told of it."""
        return KafkaSettings((self.bootstrap,), self.name, dead_letters, KafkaOptions())

    @property
    def source(self) -> str:
        """The name under which its positions are stored."""
        return self.settings().source


@contextmanager
def topic_on(bootstrap: str, partitions: int = 1, **configs: str) -> Iterator[Topic]:
    """A fresh topic, and a producer for it."""
    with producing(bootstrap, new_topic(bootstrap, partitions, **configs)) as topic:
        yield topic


@contextmanager
def producing(bootstrap: str, name: str) -> Iterator[Topic]:
    """A topic that is there already, and a producer of its own for it."""
    producer = make_client(KafkaProducer, {"bootstrap_servers": bootstrap, "acks": "all", "max_request_size": 8 << 20})
    try:
        yield Topic(bootstrap, name, producer)
    finally:
        producer.close(timeout=5)


@contextmanager
def reading(topic: Topic, store: Store, **settings: Any) -> Iterator[KafkaSource]:
    """A source that reads a topic into a store while the block runs."""
    source = KafkaSource(topic.settings(**settings), store, limits=SMALL, clock=SystemClock())
    source.start()
    try:
        yield source
    finally:
        source.stop()


def wait_until(there: Callable[[], object], what: str, timeout_s: float = 30) -> None:
    """Wait until something holds; fail with its name if it does not in time."""
    until = time.monotonic() + timeout_s
    while not there():
        assert time.monotonic() < until, f"no {what} after {timeout_s} s"
        time.sleep(0.02)


def stored(store: Store) -> int:
    """How many seqs are stored, of all streams."""
    return sum(account.stored.size for account in store.accounts().values())


def rows(store: Store) -> tuple[int, int]:
    """Rows of events, and different seqs among them."""
    with store.read() as cursor:
        found = cursor.execute("SELECT count(*), count(DISTINCT (stream_id, seq)) FROM events").fetchone()
    assert found is not None
    return int(found[0]), int(found[1])


def quarantined(store: Store) -> list[tuple[object, ...]]:
    """What was put aside: partition, offset, size, reason."""
    with store.read() as cursor:
        return cursor.execute(
            "SELECT partition, record_offset, size_bytes, reason FROM quarantine ORDER BY partition, record_offset"
        ).fetchall()


def next_offsets(store: Store, topic: Topic) -> dict[int, int]:
    """The stored position of each partition."""
    return {place.partition: at.next_offset for place, at in store.positions().items() if place.source == topic.source}
