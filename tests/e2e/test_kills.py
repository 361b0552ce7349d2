"""What must survive when a part is taken away in mid-run, seen from outside: the books, and the rows in the file."""

from pathlib import Path

import pytest
from kvtrail_agent import ring_layout as layout
from kvtrail_agent.ring_file import open_ring

from tests.e2e.parts import Collector, answer_of, collector, engine, kill, only_stream, stored_seqs, wait_for

LOAD = ("--duration", "12", "--rate", "15")


def produced(running: Collector) -> int:
    """How many events the collector has heard of."""
    streams = running.get("/v1/loss")["streams"]
    assert isinstance(streams, list)
    return sum(int(stream["stored"]) for stream in streams)


def settled(running: Collector, at_least: int) -> bool:
    """Whether everything produced is stored or explained, and it is at least so much."""
    stream = only_stream(running.get("/v1/loss"))
    return stream["in_flight"] == 0 and stream["unaccounted"] == 0 and int(str(stream["produced"])) >= at_least


@pytest.mark.timeout(180)
def test_collector_killed(tmp_path: Path, free_port: int) -> None:
    """A collector killed in mid-run and started again has every acknowledged event once, and the books balance."""
    store = tmp_path / "events.duckdb"
    with collector(store, free_port) as first, engine(first.url, tmp_path / "rings", *LOAD) as running:
        wait_for(lambda: produced(first) > 2000, 60, "events")
        kill(first.process.pid)
        first.process.wait()
        with collector(store, free_port) as second:
            total = int(str(answer_of(running, 90)["events_produced"]))
            wait_for(lambda: settled(second, total), 30, "balance")

    assert (total, total) == stored_seqs(store)


@pytest.mark.timeout(180)
def test_shipper_killed(tmp_path: Path, free_port: int) -> None:
    """A shipper killed in mid-run is started again; what it had sent twice is stored once."""
    store, rings = tmp_path / "events.duckdb", tmp_path / "rings"
    with collector(store, free_port) as running, engine(running.url, rings, *LOAD) as process:
        wait_for(lambda: produced(running) > 2000, 60, "events")
        (ring,) = rings.glob("*.ring")
        kill(open_ring(ring).word(layout.READER_PID))
        total = int(str(answer_of(process, 90)["events_produced"]))
        wait_for(lambda: settled(running, total), 30, "balance")

    assert (total, total) == stored_seqs(store)


@pytest.mark.timeout(180)
def test_engine_killed(tmp_path: Path, free_port: int) -> None:
    """An engine killed in mid-run leaves a ring that is delivered whole; what was torn is said, nothing is unaccounted."""
    store, rings = tmp_path / "events.duckdb", tmp_path / "rings"
    with collector(store, free_port) as running, engine(running.url, rings, *LOAD) as process:
        wait_for(lambda: produced(running) > 2000, 60, "events")
        kill(process.pid)
        process.wait()
        wait_for(lambda: not list(rings.glob("*.ring")), 30, "delivered ring")
        wait_for(lambda: settled(running, 2000), 30, "balance")
        stream = only_stream(running.get("/v1/loss"))

    rows, seqs = stored_seqs(store)
    assert rows == seqs == stream["stored"]
