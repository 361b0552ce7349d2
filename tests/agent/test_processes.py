"""Real processes, really killed: what an emit returned for is delivered, or declared; nothing is lost in silence."""

import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.settings import AgentSettings
from kvtrail_agent.shipping import ProcessShipping, ShipperMode
from kvtrail_schema.batch import StreamState
from kvtrail_schema.events import AgentStopped, StepStarted
from kvtrail_schema.identity import StepId

from tests.agent import engine_process
from tests.agent.deliveries import Delivered, deliveries
from tests.agent.waiting import PATIENCE_S, wait_for

NOWHERE = "http://127.0.0.1:1"


class Engine:
    """A running engine process, and what it says of its progress."""

    def __init__(self, mode: str, folder: Path, transport: str) -> None:
        self.rings = folder / "rings"
        progress = folder / "progress"
        progress.write_bytes(bytes(16))
        with progress.open("r+b") as file:
            self._words = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
        command = [sys.executable, engine_process.__file__, mode, str(self.rings), transport, str(progress)]
        self.process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})

    @property
    def last_seq(self) -> int:
        """The last seq that an emit returned."""
        return int(self._words[0])

    @property
    def shipper_pid(self) -> int:
        """The process of its first shipper."""
        return int(self._words[1])

    def kill(self) -> int:
        """`kill -9`; the last seq that an emit had returned by then."""
        self.process.kill()
        self.process.wait()
        return self.last_seq

    @property
    def is_delivered(self) -> bool:
        """Whether no ring is left."""
        return not list(self.rings.glob("*"))


@contextmanager
def engine(mode: str, folder: Path, transport: str) -> Iterator[Engine]:
    """An engine process that ends with the test."""
    running = Engine(mode, folder, transport)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.kill()


def only(found: dict[int, Delivered]) -> Delivered:
    """The one stream that was delivered."""
    (stream,) = found.values()
    return stream


@pytest.fixture
def segments(private_dir: Path) -> Path:
    """Where frames arrive."""
    path = private_dir / "segments"
    path.mkdir()
    return path


def test_a_killed_engine_loses_nothing_that_emit_returned_for(private_dir: Path, segments: Path) -> None:
    """`kill -9` in mid-emit: the shipper outlives the engine, delivers what is in the ring and says how it ended."""
    with engine("for-ever", private_dir, segments.as_uri()) as victim:
        wait_for(lambda: victim.last_seq > 5_000, "the engine's events")
        last = victim.kill()
        wait_for(lambda: victim.is_delivered, "delivery after the engine's death")
    stream = only(deliveries(segments))

    assert set(range(1, last + 1)) <= stream.events.keys() | stream.dropped
    assert set() == stream.unaccounted
    assert stream.produced >= last
    assert StreamState.KILLED == stream.headers[-1].state
    assert stream.dropped == set(), "the ring had room: nothing but a torn event could be lost"


def test_engine_and_shipper_killed_together_lose_nothing(private_dir: Path, segments: Path) -> None:
    """With both dead the events wait in the ring's file, and the next recorder on this host has them delivered."""
    with engine("for-ever", private_dir, NOWHERE) as victim:
        wait_for(lambda: victim.last_seq > 2_000, "the engine's events")
        os.kill(victim.shipper_pid, signal.SIGKILL)
        last = victim.kill()
        settings = AgentSettings(engine="next", transport=segments.as_uri(), ring_dir=victim.rings, close_timeout_ms=30_000)
        following = Recorder.start(settings)
        delivered = following.close(PATIENCE_S)
        wait_for(lambda: victim.is_delivered, "delivery of the ring left behind")
        wait_for(lambda: all(shipping.has_ended for shipping in following._left_behind), "the end of its shipper")
    found = deliveries(segments)
    own = found.pop(following.stream.epoch)
    left = only(found)

    assert delivered
    assert set() == own.unaccounted
    assert set(range(1, last + 1)) <= left.events.keys() | left.dropped
    assert set() == left.unaccounted
    assert {"victim"} == {header.engine for header in left.headers}


def test_an_exit_without_close_delivers(private_dir: Path, segments: Path) -> None:
    """A program that just ends is closed in order by the interpreter's exit."""
    with engine("exit", private_dir, segments.as_uri()) as ending:
        status = ending.process.wait(PATIENCE_S)
        wait_for(lambda: ending.is_delivered, "delivery at exit")
    stream = only(deliveries(segments))

    assert status == 0
    assert list(range(1, stream.produced + 1)) == sorted(stream.events)
    assert isinstance(stream.events[stream.produced], AgentStopped)
    assert sum(isinstance(event, StepStarted) for event in stream.events.values()) == 1000
    assert StreamState.STOPPED == stream.headers[-1].state


def test_a_forked_child_has_a_stream_of_its_own(private_dir: Path, segments: Path) -> None:
    """After a fork the child draws a new epoch and writes into a ring of its own; the parent goes on as if alone."""
    with engine("fork", private_dir, segments.as_uri()) as parent:
        status = parent.process.wait(PATIENCE_S)
        wait_for(lambda: parent.is_delivered, "delivery of both rings")
    found = deliveries(segments)
    steps = [
        sorted(event.step for event in stream.events.values() if isinstance(event, StepStarted)) for stream in found.values()
    ]

    assert status == 0
    assert sorted(steps) == [[1, *range(1000, 1100)], list(range(2000, 2100))]
    for stream in found.values():
        assert set() == stream.unaccounted | stream.dropped
        assert isinstance(stream.events[stream.produced], AgentStopped)


def in_process(folder: Path, segments: Path, heartbeat_interval_ms: int) -> Recorder:
    """A recorder of this process with a shipper beside it."""
    settings = AgentSettings(
        engine="test-engine",
        transport=segments.as_uri(),
        ring_dir=folder / "rings",
        slot_count=1 << 14,
        flush_rows=200,
        flush_interval_ms=10,
        heartbeat_interval_ms=heartbeat_interval_ms,
        close_timeout_ms=30_000,
    )
    return Recorder.start(settings, mode=ShipperMode.PROCESS)


def shipper_of(recorder: Recorder) -> ProcessShipping:
    """The shipper's process of a recorder."""
    assert isinstance(recorder.shipping, ProcessShipping)
    return recorder.shipping


def has_arrived(segments: Path, seq: int) -> bool:
    """Whether an event of the one stream lies in the segments."""
    found = deliveries(segments)
    return bool(found) and seq in only(found).events


def test_a_killed_shipper_is_revived_and_nothing_is_lost(private_dir: Path, segments: Path) -> None:
    """`kill -9` of the shipper, twice in mid-run: its successor sends again what was not acknowledged, the same rows."""
    recorder = in_process(private_dir, segments, heartbeat_interval_ms=20)
    for _ in range(2):
        pid = shipper_of(recorder).pid
        for number in range(3000):
            seq = recorder.step_started(StepId(number))
        wait_for(lambda: deliveries(segments), "first frames")
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda old=pid: shipper_of(recorder).pid != old, "a new shipper")  # type: ignore[misc]  # binds this round's
    delivered = recorder.close(PATIENCE_S)
    stream = only(deliveries(segments))

    assert delivered
    assert seq <= stream.produced
    assert list(range(1, stream.produced + 1)) == sorted(stream.events)
    assert stream.differing == []
    assert stream.dropped == set()


def test_a_shipper_asked_to_end_leaves_the_ring(private_dir: Path, segments: Path) -> None:
    """SIGTERM ends a shipper between two batches; what it had not delivered is delivered at the recorder's close."""
    recorder = in_process(private_dir, segments, heartbeat_interval_ms=60_000)
    first = recorder.step_started(StepId(1))
    wait_for(lambda: has_arrived(segments, first), "the first event")
    process = shipper_of(recorder)._process
    process.terminate()
    status = process.wait(PATIENCE_S)
    left = recorder.ring_path.exists()
    late = recorder.step_started(StepId(2))
    delivered = recorder.close(PATIENCE_S)
    stream = only(deliveries(segments))

    assert (status, left, delivered) == (1, True, True)
    assert {first, late} <= stream.events.keys()
    assert set() == stream.unaccounted
    assert not recorder.ring_path.exists()
