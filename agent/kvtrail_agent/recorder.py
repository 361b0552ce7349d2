"""The recorder: what an engine holds. Its emit methods are those of `Emitter`; this file starts and ends it.

```python
recorder = Recorder.start(AgentSettings(engine="chat-1", transport="http://127.0.0.1:4750"))
recorder.request_arrived(req, tokens=812)
...
recorder.close()
```
"""

import atexit
import logging
import os
import re
import secrets
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kvtrail_schema.absent import NO_U64
from kvtrail_schema.clock import Clock, SystemClock, read_clocks
from kvtrail_schema.counters import RECORDER_COST
from kvtrail_schema.identity import Epoch, Rank, Stream
from kvtrail_schema.reasons import AgentReason

from kvtrail_agent import ring_layout as layout
from kvtrail_agent.emit_methods import EmitMethods
from kvtrail_agent.errors import AgentError, RingError
from kvtrail_agent.nvml import NvmlSampler
from kvtrail_agent.ring_file import RING_SUFFIX, RingFile, create_ring
from kvtrail_agent.settings import AgentSettings, check_settings
from kvtrail_agent.shipping import (
    NoShipping,
    ProcessShipping,
    ShipperMode,
    Shipping,
    ThreadShipping,
    left_behind,
    previous_epoch,
    ship_left_behind,
)
from kvtrail_agent.transports.base import check_address
from kvtrail_agent.version import VERSION
from kvtrail_agent.writer_choice import WriterKind, writer_in_use

LOG: Final = logging.getLogger("kvtrail")
_SMALLEST_STEP_NS: Final = 10_000_000


LARGEST_EXACT: Final = 2**53 - 1
"""Readers of JSON that keep numbers as doubles have whole numbers up to here exactly (contract, OUTPUTS)."""


def new_epoch() -> Epoch:
    """A random id of 53 bits; never 0."""
    return Epoch(secrets.randbelow(LARGEST_EXACT) + 1)


class Recorder(EmitMethods):
    """Records events of one engine's rank. Emit methods run on any thread of the engine; they never block and never raise.

    An event whose method returned outlives the process: it lies in shared memory, and the shipper delivers it even after
    a `kill -9`. An event that finds no room is dropped and counted, never waited for. After `fork` the child records
    under a new epoch into a ring of its own.
    """

    def __init__(
        self,
        settings: AgentSettings,
        *,
        clock: Clock,
        epochs: Callable[[], Epoch],
        mode: ShipperMode,
        run_in_thread: Callable[[Path], bool] | None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._epochs = epochs
        self._mode = mode
        self._run_in_thread = run_in_thread
        self._stop = threading.Event()
        self._closing = False  # guarded by _lock
        self._left_behind: list[ProcessShipping] = []  # touched at start, then by the heartbeat alone
        super().__init__(self._new_ring(), clock)

    @classmethod
    def start(
        cls,
        settings: AgentSettings,
        *,
        clock: Clock | None = None,
        epochs: Callable[[], Epoch] = new_epoch,
        mode: ShipperMode = ShipperMode.PROCESS,
        run_in_thread: Callable[[Path], bool] | None = None,
    ) -> "Recorder":
        """Make the ring, start shipper and heartbeat, and record `agent_started`.

        Takes some 30 ms, once: every page of the ring is made ready.

        Raises:
            AgentError: the ring cannot be made, the shipper not be started, or a setting is impossible. The engine can go
                on without a recorder.
        """
        chosen = _with_writer(cls)
        if chosen is not cls:
            return chosen.start(settings, clock=clock, epochs=epochs, mode=mode, run_in_thread=run_in_thread)
        check_settings(settings)
        check_address(settings.transport, settings.token_file, settings.kafka_options_file)
        _private_directory(settings.ring_dir)
        recorder = cls(settings, clock=clock or SystemClock(), epochs=epochs, mode=mode, run_in_thread=run_in_thread)
        try:
            rings = left_behind(settings.ring_dir)
            if mode is ShipperMode.PROCESS:
                recorder._left_behind = ship_left_behind(rings, settings)
            recorder._begin(previous_epoch(rings, recorder.stream))
        except AgentError:
            recorder._ring.close()
            recorder._ring.path.unlink()
            raise
        atexit.register(recorder.close)
        reopen = weakref.WeakMethod(recorder._reopen_in_child)
        os.register_at_fork(after_in_child=lambda: (method := reopen()) and method())
        return recorder

    @property
    def stream(self) -> Stream:
        """Engine, epoch and rank under which events are recorded now."""
        return self._ring.stream

    @property
    def produced(self) -> int:
        """The highest seq that was handed out."""
        return self._last_seq()

    @property
    def ring_path(self) -> Path:
        """The file of the ring."""
        return self._ring.path

    @property
    def shipping(self) -> Shipping:
        """The shipper at work."""
        return self._shipping

    def close(self, timeout_s: float | None = None) -> bool:
        """Record `agent_stopped`, take no more events, and wait a bounded time for delivery. Says whether all is delivered.

        What is not delivered by then stays with the shipper, in the ring's file or the spool, for the next start to deliver.
        May be called again, to wait again.
        """
        with self._lock:
            is_first, self._closing = not self._closing, True
        if is_first:
            self._end()
            self._revive()  # one that died since the last beat must not leave the rest behind
        return self._shipping.wait(self._settings.close_timeout_ms / 1000 if timeout_s is None else timeout_s)

    def undelivered(self) -> tuple[Path, ...]:
        """The directories in which events of this recorder still lie: its ring's, its spool's. `kvtrail agent recover` sends
        them, and so does the next start with the same directories.
        """
        settings, path = self._settings, self._ring.path
        places = ((settings.ring_dir, path), (settings.spool_dir, settings.spool_dir / path.stem))
        return tuple(directory for directory, own in places if own.exists())

    def _end(self) -> None:
        """Record the stop and let go of the ring."""
        self._stop.set()
        self._heartbeat.join()
        self._sampler.close()
        self.agent_stopped(AgentReason.RECORDER, self.produced + 1)
        # An emit method looks at `_closed` and draws its seq without letting go of the interpreter in between, those with
        # a text under this lock; so no seq is drawn after the last one was stated.
        with self._lock:
            self._closed = True
            self._ring.set_word(layout.STOPPED_SEQ, self.produced + 1)
        self._ring.close()
        atexit.unregister(self.close)

    def _new_ring(self) -> RingFile:
        """A ring under a new epoch, in a file named after it."""
        settings = self._settings
        stream = Stream(settings.engine, self._epochs(), Rank(settings.rank))
        name = f"{re.sub(r'[^A-Za-z0-9_.-]', '_', settings.engine)[:80]}-{settings.rank}-{stream.epoch:016x}{RING_SUFFIX}"
        return create_ring(settings.ring_dir / name, stream, settings.slot_count, settings.text_bytes)

    def _begin(self, previous: Epoch | None) -> None:
        """Record the start, and after which epoch it came, and let shipper and heartbeat run."""
        self.agent_started(VERSION, NO_U64 if previous is None else previous)
        self._shipping = self._ship()
        self._heartbeat = threading.Thread(target=self._beat, name="kvtrail-heartbeat", daemon=True)
        self._heartbeat.start()
        interval_ms = self._settings.nvml_interval_ms
        self._sampler = NvmlSampler(self, interval_s=interval_ms / 1000)
        if interval_ms:
            self._sampler.start()

    def _ship(self) -> Shipping:
        """Start the shipper of this ring, as the mode asks for."""
        if self._mode is ShipperMode.PROCESS:
            return ProcessShipping(self._ring.path, self._settings)
        if self._mode is ShipperMode.THREAD and self._run_in_thread is not None:
            return ThreadShipping(self._ring.path, self._run_in_thread)
        return NoShipping()

    def _beat(self) -> None:
        """Each second: say that this process is alive, and what recording took; see that the shipper is; look for steps of the
        wall clock.
        """
        known = read_clocks(self._clock)
        while not self._stop.wait(self._settings.heartbeat_interval_ms / 1000):
            self.agent_heartbeat(AgentReason.RECORDER, self.produced + 1)
            if (cost_ns := self._cost_ns()) is not None:
                self.counter_sampled(RECORDER_COST, float(cost_ns))
            clocks = read_clocks(self._clock)
            moved_ns = (clocks.wall_ns - clocks.monotonic_ns) - (known.wall_ns - known.monotonic_ns)
            # A reading that was interrupted is wrong by up to its own error: that is no step.
            if abs(moved_ns) >= _SMALLEST_STEP_NS + clocks.error_ns + known.error_ns:
                self.clock_stepped(float(moved_ns))
                known = clocks
            self._revive()

    def _revive(self) -> None:
        """Restart a dead shipper; that it cannot be started is logged, and tried again at the next beat."""
        self._left_behind = [shipping for shipping in self._left_behind if not shipping.has_ended]
        try:
            self._shipping.revive()
        except OSError as error:
            LOG.warning("kvtrail: cannot start the shipper: %s; events stay in %s", error, self._ring.path)

    def _reopen_in_child(self) -> None:
        """Runs in a forked child: a new epoch, a ring of its own. Failing to make one ends the recording, not the child."""
        if self._closing:
            return
        previous = self._ring.stream.epoch
        self._ring.close()
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._left_behind = []
        try:
            self._attach(self._new_ring())
            self._begin(previous)
        except (AgentError, OSError, RuntimeError) as error:
            self._closing = self._closed = True
            self._shipping = NoShipping()
            LOG.warning("kvtrail: no recording in the forked child of epoch %016x: %s", previous, error)


def _with_writer(recorder: type[Recorder]) -> type[Recorder]:
    """The class of recorder with the writer that this process uses; a class of somebody's own keeps what it has."""
    if recorder is not Recorder or writer_in_use() is WriterKind.PYTHON:
        return recorder
    from kvtrail_agent.recorder_fast import FastRecorder  # noqa: PLC0415 - it needs the extension, which may not be there

    return FastRecorder


def _private_directory(path: Path) -> None:
    """Make a directory that its owner alone may use, or see that it is one.

    Raises:
        RingError: it cannot be made, or belongs to somebody else.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
    except OSError as error:
        message = f"ring_dir {path}: {error.strerror}"
        raise RingError(message) from error
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        message = f"ring_dir {path} must belong to this user and be closed to others: chmod 700 it, or set another"
        raise RingError(message)
