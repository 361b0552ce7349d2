"""Doubles for tests of engines and transports: public, boring, and in the same form as the real parts."""

import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kvtrail_schema.arrow_schema import UnknownEvent, events_of
from kvtrail_schema.batch import BatchHeader, decode_batch
from kvtrail_schema.clock import Clock, SystemClock
from kvtrail_schema.events import Event

from kvtrail_agent.courier import InlineCourier
from kvtrail_agent.errors import TransportError
from kvtrail_agent.recorder import Recorder, new_epoch
from kvtrail_agent.ring_file import open_ring
from kvtrail_agent.settings import AgentSettings
from kvtrail_agent.shipper import Ended, Shipper
from kvtrail_agent.shipper_lock import remove_ring
from kvtrail_agent.shipping import ShipperMode
from kvtrail_agent.transports import Transport

TEST_ENGINE: Final = "test-engine"


class RecordingTransport:
    """Keeps every frame in memory. `failures` are raised by the next sends, one each, before anything is kept."""

    def __init__(self, failures: Iterable[TransportError] = ()) -> None:
        self._lock = threading.Lock()
        self._failures = list(failures)  # guarded by _lock
        self._frames: list[bytes] = []  # guarded by _lock
        self.closed = False

    def send(self, frame: bytes, header: BatchHeader) -> None:
        """Keep a frame, or raise the next failure."""
        with self._lock:
            if self._failures:
                raise self._failures.pop(0)
            self._frames.append(frame)

    def flush(self, timeout_s: float) -> None:
        """Every kept frame is acknowledged."""

    def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True

    @property
    def frames(self) -> list[bytes]:
        """The frames so far."""
        with self._lock:
            return list(self._frames)

    @property
    def headers(self) -> list[BatchHeader]:
        """The headers of the frames so far."""
        return [decode_batch(frame).header for frame in self.frames]

    @property
    def events(self) -> list[Event | UnknownEvent]:
        """The events of the frames so far, in their order of arrival."""
        return [event for frame in self.frames for event in events_of(decode_batch(frame).table)]


def recorder_for_tests(
    transport: Transport,
    ring_dir: Path,
    *,
    engine: str = TEST_ENGINE,
    slot_count: int = 1 << 12,
    flush_interval_ms: int = 20,
    clock: Clock | None = None,
) -> Recorder:
    """A real recorder on a small ring, shipped by a thread into the given transport. Close it to see everything delivered."""
    ring_dir.mkdir(mode=0o700, exist_ok=True)
    settings = AgentSettings(
        engine=engine,
        transport="file:///unused",
        ring_dir=ring_dir,
        slot_count=slot_count,
        text_bytes=1 << 16,
        flush_interval_ms=flush_interval_ms,
        close_timeout_ms=10_000,
    )
    used_clock = clock or SystemClock()

    def run(ring: Path) -> bool:
        opened = open_ring(ring)
        courier = InlineCourier(transport, time.sleep)
        done = Shipper(opened, courier, settings, clock=used_clock).run() is Ended.DELIVERED
        opened.close()
        if done:
            remove_ring(ring)
        return done

    return Recorder.start(settings, clock=used_clock, epochs=new_epoch, mode=ShipperMode.THREAD, run_in_thread=run)
