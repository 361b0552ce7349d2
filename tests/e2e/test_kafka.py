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
from kvtrail_schema.kafka_client import make_client

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
        AgentSettings(
            engine="e2e",
            transport=transport,
            ring_dir=folder / "rings",
            spool_dir=folder / "spool",
            flush_rows=BATCH,
            flush_interval_ms=50,
        )
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


@pytest.mark.timeout(240)
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


@pytest.mark.timeout(240)
def test_collector_killed_in_mid_consume(bootstrap: str, tmp_path: Path, free_port: int) -> None:
    """A collector that is killed again and again while records come in stores every one of them once."""
    topic, store = new_topic(bootstrap, 2), tmp_path / "events.duckdb"
    with coming_in(bootstrap, topic) as total:
        for life_s in (0.4, 1.1):
            with collector(store, free_port, *kafka_flags(bootstrap, topic)) as running:
                wait_for(lambda: stored(running), 60, "some records")
                time.sleep(life_s)
                kill(running.process.pid)
                running.process.wait()
        with collector(store, free_port, *kafka_flags(bootstrap, topic)) as running:
            wait_for(lambda: stored(running) == total, 60, "all records")

    assert (total, total) == stored_seqs(store)


@contextmanager
def coming_in(bootstrap: str, topic: str) -> Iterator[int]:
    """Records come into two partitions for ten seconds; how many events there will be."""
    records, events_each = 500, 40
    frames = [
        frame(span(1 + n // 2 * events_each, (n // 2 + 1) * events_each), engine=f"engine-{n % 2}") for n in range(records)
    ]
    producer = make_client(KafkaProducer, {"bootstrap_servers": bootstrap, "acks": "all"})

    def put_all() -> None:
        for number, value in enumerate(frames):
            producer.send(topic, value=value, key=b"engine", partition=number % 2)
            time.sleep(10 / records)

    thread = threading.Thread(target=put_all, name="records-coming-in")
    thread.start()
    try:
        yield records * events_each
    finally:
        thread.join()
        producer.close(timeout=20)


def stored(running: Collector) -> int:
    """How many events are stored, of all streams."""
    streams = running.get("/v1/loss")["streams"]
    assert isinstance(streams, list)
    return sum(int(stream["stored"]) for stream in streams)


@pytest.mark.timeout(240)
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
