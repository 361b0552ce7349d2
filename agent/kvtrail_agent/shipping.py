"""How a recorder's events are shipped: by a process of its own, by a thread (tests, small rates), or not at all."""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol

from kvtrail_schema.identity import Epoch, Stream

from kvtrail_agent.errors import RingError, ShipperNotStarted
from kvtrail_agent.ring_file import RING_SUFFIX, open_ring
from kvtrail_agent.settings import AgentSettings, ShipperConfig, encode_config

LOG: Final = logging.getLogger("kvtrail")
SHIPPER_MODULE: Final = "kvtrail_agent.shipper_process"
LOG_NAME: Final = "shipper.log"
_LOG_BYTES: Final = 1 << 20


class ShipperMode(Enum):
    """Where the shipper of a recorder runs."""

    PROCESS = "process"
    THREAD = "thread"
    NONE = "none"


class Shipping(Protocol):
    """**Protocol:** a running shipper, as its recorder sees it. Called by the recorder's heartbeat thread and at close."""

    def revive(self) -> None:
        """Start the shipper again if it died."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Wait until everything is delivered; says whether it is."""
        ...


class NoShipping:
    """Nobody ships: the ring fills, and what does not fit is counted."""

    def revive(self) -> None:
        """Nothing to start."""

    def wait(self, timeout_s: float) -> bool:
        """Nothing is ever delivered."""
        return False


class ProcessShipping:
    """A shipper in a process of its own, which ends by itself when the ring is delivered and its writer gone.

    Raises:
        ShipperNotStarted: the system refuses the process or the file that configures it.
    """

    def __init__(self, ring: Path, settings: AgentSettings) -> None:
        self._config = ring.with_suffix(".json")
        self._log_dir = settings.spool_dir
        try:
            self._config.touch(mode=0o600)
            self._config.write_bytes(encode_config(ShipperConfig(ring, settings)))
            self._process = self._start()
        except OSError as error:
            message = f"cannot start the shipper of {ring} by {sys.executable}: {error.strerror}"
            raise ShipperNotStarted(message) from error

    @property
    def has_ended(self) -> bool:
        """Whether the process is over; asking takes it off the system's list."""
        return self._process.poll() is not None

    @property
    def pid(self) -> int:
        """The process that ships now."""
        return self._process.pid

    def _start(self) -> "subprocess.Popen[bytes]":
        """Start it in a session of its own: a signal meant for the engine's group does not end the delivery.

        It holds none of the engine's files: whoever waits for the end of the engine's output does not wait for the shipper.
        """
        command = [sys.executable, "-m", SHIPPER_MODULE, str(self._config)]
        with open_log(self._log_dir) as log:
            return subprocess.Popen(  # noqa: S603 - our own module, a path that we made
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True
            )

    def revive(self) -> None:
        """Start the process again if it ended while the engine lives."""
        if self.has_ended:
            self._process = self._start()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the process to end; says whether it delivered everything."""
        try:
            return self._process.wait(timeout_s) == 0
        except subprocess.TimeoutExpired:
            return False


def open_log(directory: Path) -> BinaryIO:
    """Where shippers speak: one file (0600), begun anew at a megabyte, the one before kept; nowhere if it cannot be made."""
    path = directory / LOG_NAME
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > _LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "wb")
    except OSError as error:
        LOG.warning("kvtrail: no log of the shipper in %s: %s", directory, error.strerror)
        return Path(os.devnull).open("wb")


class ThreadShipping:
    """A shipper in a thread of the engine's process; it pays for encoding with the interpreter's lock."""

    def __init__(self, ring: Path, run: Callable[[Path], bool]) -> None:
        self._done = False
        self._thread = threading.Thread(target=self._ship, args=(ring, run), name="kvtrail-shipper", daemon=True)
        self._thread.start()

    def _ship(self, ring: Path, run: Callable[[Path], bool]) -> None:
        """Run the shipper; what it says is kept for `wait`."""
        self._done = run(ring)

    def revive(self) -> None:
        """A thread does not die alone."""

    def wait(self, timeout_s: float) -> bool:
        """Wait for the thread to end; says whether it delivered everything."""
        self._thread.join(timeout_s)
        return self._done


class LeftBehind(NamedTuple):
    """A ring whose writer is gone."""

    path: Path
    stream: Stream
    changed_ns: int
    """When its file was made or last touched by a system call, wall time: rings are ordered by it."""


def left_behind(ring_dir: Path) -> list[LeftBehind]:
    """The rings of a directory whose writer is gone, by name. Looks at every ring, once, at the start of a recorder."""
    return [found for path in sorted(ring_dir.glob(f"*{RING_SUFFIX}")) if (found := _left_behind(path)) is not None]


def ship_left_behind(rings: Sequence[LeftBehind], settings: AgentSettings) -> list[ProcessShipping]:
    """Start a shipper for every ring whose writer is gone. Runs once, at the start of a recorder.

    A shipper that finds another one at work on its ring ends at once, so starting one too many does no harm.
    """
    return [ProcessShipping(ring.path, settings) for ring in rings]


def previous_epoch(rings: Sequence[LeftBehind], stream: Stream) -> Epoch | None:
    """The epoch after which a stream comes: that of the newest ring left behind by the same engine and rank, if any."""
    same = [ring for ring in rings if (ring.stream.engine, ring.stream.rank) == (stream.engine, stream.rank)]
    return max(same, key=lambda ring: ring.changed_ns).stream.epoch if same else None


def _left_behind(path: Path) -> LeftBehind | None:
    """A ring that has lost its writer. One that is being made, is gone again, or is foreign, is none of our business."""
    try:
        ring = open_ring(path)
    except RingError as error:
        LOG.warning("kvtrail: %s; it is left alone", error)
        return None
    try:
        changed_ns = os.fstat(ring.lock).st_mtime_ns
        return LeftBehind(path, ring.stream, changed_ns) if ring.writer_is_dead() else None
    finally:
        ring.close()
