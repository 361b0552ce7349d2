"""The events of a benchmark in a topic of a real broker, filled before anybody reads; and how fast a collector takes them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final, NamedTuple

import httpx
from kafka import KafkaProducer
from kvtrail_collector.settings import Settings
from kvtrail_collector.sources.kafka_settings import kafka_settings
from kvtrail_collector.sources.kafka_topic import TopicShape, create_topic
from kvtrail_schema.header import peek_header
from kvtrail_schema.kafka_client import make_client
from kvtrail_schema.kafka_record import headers_of, key_of

from kvtrail_cli.bench.senders import Arrival, Parcel
from kvtrail_cli.demo.broker import local_broker
from kvtrail_cli.errors import CollectorUnreachable
from kvtrail_cli.output import Advance

_FLUSH_S: Final = 60.0
_POLL_S: Final = 0.05
_STALLED_S: Final = 60.0
_STORED: Final = "kvtrail_events_stored_total"
_RECORD_BYTES: Final = 17 << 20


class Filled(NamedTuple):
    """A topic with all events in it."""

    bootstrap: str
    topic: str

    @property
    def variables(self) -> dict[str, str]:
        """What a collector is told of it."""
        return {"KVTRAIL_KAFKA_BOOTSTRAP": self.bootstrap, "KVTRAIL_KAFKA_TOPIC": self.topic}


@contextmanager
def filled_topic(parcels: Iterable[Parcel], bootstrap: str, folder: Path) -> Iterator[Filled]:
    """A fresh topic with these frames, on the brokers named or on one of our own; the producer has ended by then.

    Raises:
        PartMissing: no brokers are named, and this machine cannot start one.
    """
    with nullcontext() if bootstrap else local_broker(folder / "broker") as own:
        filled = Filled(bootstrap or str(own.bootstrap if own else ""), f"kvtrail-bench-{uuid.uuid4().hex[:12]}")
        settings = kafka_settings(Settings(kafka_bootstrap=filled.bootstrap, kafka_topic=filled.topic))
        if settings is not None:
            create_topic(settings, TopicShape(partitions=1, retention_hours=1))
        _fill(filled, parcels)
        yield filled


def _fill(filled: Filled, parcels: Iterable[Parcel]) -> None:
    """Send every frame as shippers do: one record a batch, acknowledged by all replicas."""
    wanted = {"bootstrap_servers": filled.bootstrap, "acks": "all", "max_request_size": _RECORD_BYTES}
    producer = make_client(KafkaProducer, wanted)
    try:
        for parcel in parcels:
            header = peek_header(parcel.frame)
            producer.send(filled.topic, value=parcel.frame, key=key_of(header), headers=headers_of(header))
        producer.flush(timeout=_FLUSH_S)
    finally:
        producer.close(timeout=_FLUSH_S)


def watch_stored(url: str, events: int, advance: Advance) -> list[Arrival]:
    """What the collector has stored, looked at every 50 ms until it is everything; from the first look on.

    Raises:
        CollectorUnreachable: nothing more was stored for a minute.
    """
    begin_ns, stored, moved_s = time.perf_counter_ns(), 0, time.monotonic()
    arrivals: list[Arrival] = []
    with httpx.Client(base_url=url, timeout=_STALLED_S) as client:
        while stored < events:
            if time.monotonic() - moved_s > _STALLED_S:
                raise CollectorUnreachable(f"the collector of the benchmark stores nothing more after {stored} events")
            time.sleep(_POLL_S)
            now = _stored(client)
            if now > stored:
                arrivals.append(Arrival(begin_ns, time.perf_counter_ns(), now - stored))
                stored, moved_s = now, time.monotonic()
                advance(stored, events)
    return arrivals


def _stored(client: httpx.Client) -> int:
    """The events that a collector says are stored."""
    lines = client.get("/metrics").text.splitlines()
    return next((int(float(line.split()[-1])) for line in lines if line.startswith(_STORED)), 0)
