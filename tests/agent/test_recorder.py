"""The recorder: how it starts, what it says of itself, how it ends, and that the engine never hears of trouble."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kvtrail_agent.errors import AgentError, RingError, SettingsInvalid, ShipperNotStarted
from kvtrail_agent.recorder import Recorder, new_epoch
from kvtrail_agent.ring_file import open_ring
from kvtrail_agent.ring_reader import RingReader
from kvtrail_agent.settings import AgentSettings
from kvtrail_agent.shipping import ProcessShipping, ShipperMode
from kvtrail_agent.testing import RecordingTransport, recorder_for_tests
from kvtrail_schema.arrow_schema import UnknownEvent, events_of
from kvtrail_schema.clock import Clock, ManualClock, SystemClock
from kvtrail_schema.events import AgentHeartbeat, AgentStarted, AgentStopped, ClockStepped, CounterSampled, Event
from kvtrail_schema.identity import Epoch, RequestId, StepId
from kvtrail_schema.reasons import AgentReason

from tests.agent.waiting import wait_for

STEP_NS = 10_000_000


def settings_in(ring_dir: Path, **changes: Any) -> AgentSettings:
    """Settings of a small recorder whose address leads nowhere."""
    fields: dict[str, Any] = {
        "engine": "test-engine",
        "transport": "http://127.0.0.1:1",
        "ring_dir": ring_dir,
        "slot_count": 1024,
        "text_bytes": 1 << 14,
        "heartbeat_interval_ms": 10,
        "close_timeout_ms": 100,
    }
    return AgentSettings(**fields | changes)


def start_unshipped(ring_dir: Path, clock: Clock | None = None, **changes: Any) -> Recorder:
    """A recorder that nobody ships: its events stay in the ring, for the test to read."""
    return Recorder.start(settings_in(ring_dir, **changes), clock=clock, mode=ShipperMode.NONE)


def recorded(recorder: Recorder) -> list[Event | UnknownEvent]:
    """What lies in a recorder's ring."""
    ring = open_ring(recorder.ring_path)
    found = events_of(RingReader(ring).read(1 << 20).table)
    ring.close()
    return found


@pytest.fixture
def recorder(private_dir: Path) -> Iterator[Recorder]:
    """A running recorder, closed at the end."""
    running = start_unshipped(private_dir)
    yield running
    running.close()


def test_nothing_is_emitted_when_nothing_happens(private_dir: Path) -> None:
    """A recorder of an idle engine speaks of itself alone: that it started, lives, and stopped."""
    transport = RecordingTransport()
    recorder = recorder_for_tests(transport, private_dir / "rings")
    time.sleep(0.1)
    delivered = recorder.close()
    kinds = [type(event) for event in transport.events]

    assert delivered
    assert kinds[0] is AgentStarted
    assert kinds[-1] is AgentStopped
    assert {AgentHeartbeat, CounterSampled} >= set(kinds[1:-1])
    assert list((private_dir / "rings").iterdir()) == []


def test_events_arrive_in_their_order(private_dir: Path) -> None:
    """From emit to transport, by way of a real ring: every event, once, in the order of its seq."""
    transport = RecordingTransport()
    recorder = recorder_for_tests(transport, private_dir)
    seqs = [recorder.step_started(StepId(n)) for n in range(3000)]
    recorder.close()
    found = [event.seq for event in transport.events]

    assert list(range(1, len(found) + 1)) == found
    assert set(seqs) <= set(found)


def test_a_recorder_names_its_version(recorder: Recorder) -> None:
    """The first event is the start, with the version of the agent."""
    first = recorded(recorder)[0]

    assert isinstance(first, AgentStarted)
    assert first.seq == 1
    assert first.text


def test_heartbeats_say_what_was_produced(private_dir: Path) -> None:
    """At each interval a thread of the engine's process says that it runs, and the highest seq so far, its own included."""
    recorder = start_unshipped(private_dir)
    recorder.step_started(StepId(1))
    wait_for(lambda: recorder.produced >= 8, "three heartbeats")
    recorder.close()
    beats = [event for event in recorded(recorder) if isinstance(event, AgentHeartbeat)]

    assert len(beats) >= 3
    assert all(beat.reason is AgentReason.RECORDER and beat.produced == beat.seq for beat in beats)


@pytest.mark.parametrize(
    ("moved_ns", "expected"),
    [(STEP_NS, [1e7]), (-STEP_NS, [-1e7]), (STEP_NS - 1, []), (3_600_000_000_000, [3.6e12])],
    ids=["10 ms", "back by 10 ms", "less", "an hour"],
)
def test_a_step_of_the_wall_clock_is_an_event(moved_ns: int, expected: list[float], private_dir: Path) -> None:
    """From ten milliseconds on, once, with the size and direction of the step."""
    clock = ManualClock(wall_ns=1_700_000_000_000_000_000)
    recorder = start_unshipped(private_dir, clock)
    wait_for(lambda: recorder.produced >= 3, "a heartbeat")
    clock.step_wall(moved_ns)
    after = recorder.produced + 4
    wait_for(lambda: recorder.produced >= after, "heartbeats after the step")
    recorder.close()
    steps = [event.value for event in recorded(recorder) if isinstance(event, ClockStepped)]

    assert expected == steps


class InterruptedClock(ManualClock):
    """A clock whose reader loses its processor for 100 ms between two readings, each other time."""

    def __init__(self) -> None:
        super().__init__(wall_ns=1_700_000_000_000_000_000)
        self._calls = 0

    def wall_ns(self) -> int:
        """The wall time, and then a long wait."""
        self._calls += 1
        now_ns = super().wall_ns()
        if self._calls % 2:
            self.advance(100_000_000)
        return now_ns


def test_an_interrupted_reading_is_no_step(private_dir: Path) -> None:
    """What a busy interpreter does to a reading of two clocks is known from the reading itself."""
    recorder = start_unshipped(private_dir, InterruptedClock())
    wait_for(lambda: recorder.produced >= 10, "heartbeats")
    recorder.close()

    assert [event for event in recorded(recorder) if isinstance(event, ClockStepped)] == []


def test_a_closed_recorder_takes_nothing(private_dir: Path) -> None:
    """After close every emit returns 0, writes nothing and raises nothing, whatever it is given."""
    recorder = start_unshipped(private_dir)
    recorder.close()
    produced = recorder.produced
    seqs = [recorder.step_started(StepId(1)), recorder.manifest_declared("{}"), recorder.step_started(StepId(-1))]

    assert seqs == [0, 0, 0]
    assert produced == recorder.produced
    assert isinstance(recorded(recorder)[-1], AgentStopped)


def test_the_stop_is_the_last_event(private_dir: Path) -> None:
    """The stop states how many events were produced, itself included."""
    recorder = start_unshipped(private_dir)
    recorder.request_admitted(RequestId(1))
    recorder.close()
    last = recorded(recorder)[-1]

    assert isinstance(last, AgentStopped)
    assert last.reason is AgentReason.RECORDER
    assert recorder.produced == last.produced == last.seq


def test_closing_while_others_emit_accounts_for_every_seq(private_dir: Path) -> None:
    """Threads that emit while the recorder closes are either recorded or turned away with 0; no seq is left unknown."""
    transport = RecordingTransport()
    recorder = recorder_for_tests(transport, private_dir, slot_count=1 << 16)
    seqs: list[list[int]] = [[] for _ in range(3)]

    def emit(own: list[int]) -> None:
        while seq := recorder.manifest_declared("{}") if len(own) % 7 == 0 else recorder.step_started(StepId(1)):
            own.append(seq)

    threads = [threading.Thread(target=emit, args=(own,), name="emitter", daemon=True) for own in seqs]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    recorder.close()
    for thread in threads:
        thread.join()
    returned = {seq for own in seqs for seq in own}
    settled = {event.seq for event in transport.events}
    settled |= {s for header in transport.headers for d in header.drops for s in range(d.first_seq, d.last_seq + 1)}

    assert set(range(1, recorder.produced + 1)) == settled
    assert returned <= settled


def test_close_may_be_called_twice_and_at_once(private_dir: Path) -> None:
    """Two threads that close together, and a third close after them, end one recorder once."""
    recorder = start_unshipped(private_dir)
    threads = [threading.Thread(target=recorder.close, name="closer", daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close()

    assert [AgentStopped] == [type(event) for event in recorded(recorder) if isinstance(event, AgentStopped)]


def end(shipping: object) -> None:
    """End a shipper's process that has nobody to deliver to."""
    assert isinstance(shipping, ProcessShipping)
    shipping._process.kill()
    shipping._process.wait()


def test_close_is_bounded_when_nobody_listens(private_dir: Path) -> None:
    """With the transport down close returns within its timeout and says no; the events stay in the ring's file."""
    recorder = Recorder.start(settings_in(private_dir))
    recorder.step_started(StepId(1))
    begin = time.monotonic()
    delivered = recorder.close(timeout_s=0.2)
    took_s = time.monotonic() - begin
    end(recorder.shipping)

    assert not delivered
    assert took_s < 10.0
    assert recorder.ring_path.exists()


def test_a_directory_that_others_may_enter_is_refused(private_dir: Path) -> None:
    """Events may say much about an engine: the error says what to do."""
    private_dir.chmod(0o750)
    with pytest.raises(RingError, match=f"ring_dir {private_dir} must belong to this user .*: chmod 700 it, or set another"):
        start_unshipped(private_dir)

    private_dir.chmod(0o700)


def test_a_directory_is_made_private(private_dir: Path) -> None:
    """One that is not there yet is made, for its owner alone."""
    recorder = start_unshipped(private_dir / "rings")
    recorder.close()

    assert (private_dir / "rings").stat().st_mode & 0o777 == 0o700


def test_a_file_in_the_way_is_named(private_dir: Path) -> None:
    """The error names the setting and the path."""
    (private_dir / "file").touch()
    with pytest.raises(RingError, match=f"ring_dir {private_dir}/file"):
        start_unshipped(private_dir / "file")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"engine": ""}, "engine"),
        ({"rank": -1}, "rank"),
        ({"flush_rows": 0}, "flush_rows"),
        ({"heartbeat_interval_ms": 0}, "heartbeat_interval_ms"),
        ({"transport": "ftp://host"}, "ftp://host"),
        ({"token_file": Path("/nowhere/token")}, "/nowhere/token"),
        ({"slot_count": 1000}, "slot_count"),
        ({"engine": "ü" * 200}, "ü"),
    ],
)
def test_impossible_settings_are_heard_at_start(change: dict[str, Any], problem: str, private_dir: Path) -> None:
    """Before any event, by name, and without leaving a file; not by a shipper that dies again and again."""
    with pytest.raises(AgentError, match=problem) as caught:
        start_unshipped(private_dir, **change)

    assert isinstance(caught.value, SettingsInvalid | RingError)
    assert list(private_dir.iterdir()) == []


def test_a_shipper_that_cannot_start_is_heard_at_start(private_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine can go on without a recorder; no ring stays behind that nobody would ever fill."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ShipperNotStarted, match="/nowhere/python: No such file"):
        Recorder.start(settings_in(private_dir))

    assert list(private_dir.glob("*.ring")) == []


def test_strange_rings_do_not_stop_a_start(private_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Another rank's half-made ring, or one of another version, is left alone with a warning."""
    (private_dir / "strange.ring").write_bytes(b"half made")
    recorder = Recorder.start(settings_in(private_dir))
    recorder.close(timeout_s=0)
    end(recorder.shipping)

    assert "strange.ring is no ring" in caplog.text
    assert (private_dir / "strange.ring").read_bytes() == b"half made"


def test_epochs_are_random_and_in_range() -> None:
    """An epoch is never 0, never the reserved one, and not the one before."""
    epochs = {new_epoch() for _ in range(1000)}

    assert len(epochs) == 1000
    assert all(0 < epoch < 2**64 - 1 for epoch in epochs)


def test_clock_and_epoch_are_passed_in(private_dir: Path) -> None:
    """Who builds a recorder decides on time and identity."""
    settings = settings_in(private_dir, engine="chat/1 é", rank=2)
    recorder = Recorder.start(settings, clock=SystemClock(), epochs=lambda: Epoch(42), mode=ShipperMode.NONE)
    recorder.close()

    assert (recorder.stream.engine, recorder.stream.epoch, recorder.stream.rank) == ("chat/1 é", 42, 2)
    assert recorder.ring_path.name == "chat_1__-2-000000000000002a.ring"


HEAVY = ["numpy", "pyarrow", "torch", "duckdb", "fastapi", "streamlit", "httpx"]


def test_the_engine_does_not_load_what_the_shipper_needs() -> None:
    """Importing the recorder costs an engine none of the libraries that encode, send or store."""
    code = f"import sys, kvtrail_agent.recorder; print(*[name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert loaded.stdout.split() == []
