"""The whole way through a real broker: recorder, shipper, topic, collector; and each part taken away in mid-run."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.settings import AgentSettings
from kvtrail_cli.demo.broker import LocalBroker
from kvtrail_schema.identity import StepId

from tests.broker import new_topic
from tests.collector.frames import frame, span
from tests.e2e.parts import Collector, collector, kill, stored_seqs, wait_for

BATCH = 500


def kafka_flags(bootstrap: str, topic: str) -> tuple[str, ...]:
    """What a collector is told."""
    return ("--kafka-bootstrap", bootstrap, "--kafka-topic", topic)


@contextmanager
def recorder(transport: str, folder: Path) -> Iterator[Recorder]:
    """A recorder with its shipper in a process of its own."""
    recording = Recorder.start(
        AgentSettings(engine="e2e", transport=transport, ring_dir=folder / "rings", flush_rows=BATCH, flush_interval_ms=50)
    )
    try:
        yield recording
    finally:
        recording.close(30)


def emit_for(recording: Recorder, duration_s: float, rate_per_s: int = 4_000) -> int:
    """Record events at a steady rate; how many there are then."""
    until = time.monotonic() + duration_s
    while time.monotonic() < until:
        for number in range(rate_per_s // 100):
            recording.step_started(StepId(number))
        time.sleep(0.01)
    return recording.produced


def settled(running: Collector, produced: int) -> bool:
    """Whether so many events are stored and the books balance."""
    streams = running.get("/v1/loss")["streams"]
    if not streams:
        return False
    assert isinstance(streams, list)
    stream = streams[0]
    return (produced, 0, 0) == (stream["stored"], stream["in_flight"], stream["unaccounted"])


@pytest.mark.timeout(120)
def test_recorder_to_store(bootstrap: str, tmp_path: Path, free_port: int) -> None:
    """Everything that a recorder recorded is stored once, and the balance of loss says so; the collector says that it reads."""
    topic, store = new_topic(bootstrap, 3), tmp_path / "events.duckdb"
    with collector(store, free_port, *kafka_flags(bootstrap, topic)) as running:
        with recorder(f"kafka://{bootstrap}/{topic}", tmp_path) as recording:
            emit_for(recording, 2)
            delivered = recording.close(30)
        produced = recording.produced
        wait_for(lambda: settled(running, produced), 30, "balance")
        ready = running.get("/readyz")
        metrics = running.get_text("/metrics")

    assert delivered
    assert (produced, produced) == stored_seqs(store)
    assert "kafka source" in [check["name"] for check in ready["checks"]]  # type: ignore[attr-defined]  # JSON
    assert "kvtrail_kafka_up 1.0" in metrics
    assert 'kvtrail_kafka_lag_records{partition="0"} 0.0' in metrics


@pytest.mark.timeout(120)
def test_collector_killed_in_mid_consume(bootstrap: str, tmp_path: Path, free_port: int) -> None:
    """A collector that is killed again and again while it reads stores every record once."""
    topic, store = new_topic(bootstrap, 2), tmp_path / "events.duckdb"
    total = fill(bootstrap, topic, records=400)
    for stop_at in (1, total // 3):
        with collector(store, free_port, *kafka_flags(bootstrap, topic)) as running:
            wait_for(lambda at=stop_at: stored(running) >= at, 60, "some records")  # type: ignore[misc]  # a lambda's default
            kill(running.process.pid)
            running.process.wait()
    with collector(store, free_port, *kafka_flags(bootstrap, topic)) as running:
        wait_for(lambda: stored(running) == total, 60, "all records")

    assert (total, total) == stored_seqs(store)


def fill(bootstrap: str, topic: str, records: int) -> int:
    """Fill two partitions; how many events there are then."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all")
    for number in range(records):
        first = 1 + number // 2 * BATCH
        value = frame(span(first, first + BATCH - 1), engine=f"engine-{number % 2}")
        producer.send(topic, value=value, key=b"engine", partition=number % 2)
    producer.close(timeout=30)
    return records * BATCH


def stored(running: Collector) -> int:
    """How many events are stored, of all streams."""
    streams = running.get("/v1/loss")["streams"]
    assert isinstance(streams, list)
    return sum(int(stream["stored"]) for stream in streams)


@pytest.mark.timeout(120)
def test_broker_stopped_under_load(own_broker: LocalBroker, tmp_path: Path, free_port: int) -> None:
    """While the broker is away the engine goes on recording; when it is back everything is stored, and nothing was lost."""
    topic, store = new_topic(own_broker.bootstrap), tmp_path / "events.duckdb"
    with collector(store, free_port, *kafka_flags(own_broker.bootstrap, topic)) as running:
        with recorder(f"kafka://{own_broker.bootstrap}/{topic}", tmp_path) as recording:
            emit_for(recording, 1)
            away = threading.Thread(target=own_broker.kill)
            away.start()
            emit_for(recording, 6)
            away.join()
            lost = running.get_status("/readyz")
            own_broker.start()
            emit_for(recording, 1)
            recording.close(60)
        produced = recording.produced
        wait_for(lambda: settled(running, produced), 60, "balance")

    assert lost == 503
    assert (produced, produced) == stored_seqs(store)
