"""The shipper: carries a ring's events away, in a process of its own (`python -m kvtrail_agent.shipper CONFIG`).

It takes no interpreter time from the engine, and it outlives it: when the engine is killed it ships what is left and
says what was torn. Only an acknowledged chunk is released in the ring, so a shipper that is killed loses nothing either;
what it had sent and not released is sent again, and the collector keeps each seq once.
"""

import contextlib
import fcntl
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Final

from kvtrail_schema import batch
from kvtrail_schema.batch import BatchHeader, DropRange, StreamState
from kvtrail_schema.clock import Clock, SystemClock, read_clocks
from kvtrail_schema.enums import Stage
from kvtrail_schema.errors import FrameTooLarge
from kvtrail_schema.reasons import DropReason

from kvtrail_agent.errors import BatchRejected, TransportUnavailable
from kvtrail_agent.ring_file import RingFile, open_ring
from kvtrail_agent.ring_reader import Chunk, RingReader
from kvtrail_agent.settings import AgentSettings, ShipperConfig, decode_config
from kvtrail_agent.transports import Transport, open_transport

_SECOND_NS: Final = 1_000_000_000
_STUCK_NS: Final = 5 * _SECOND_NS
_LINGER_NS: Final = 60 * _SECOND_NS
_LONGEST_BACKOFF_S: Final = 1.0
_FLUSH_TIMEOUT_S: Final = 10.0
_TICK_S: Final = 0.02


class Halted(Exception):
    """The shipper was told to stop while it waited; the ring keeps what was not delivered."""


@dataclass(slots=True)
class Pace:
    """When the shipper last did what; used by its one thread."""

    sent_ns: int
    hole_seq: int = 0  # the unwritten seq that others have overtaken, and since when it is known
    hole_since_ns: int = 0
    writer_gone_ns: int | None = None


class Shipper:
    """Delivers one ring through one transport. Runs in one thread, of a process of its own or (in tests) of the engine's."""

    def __init__(
        self,
        ring: RingFile,
        transport: Transport,
        settings: AgentSettings,
        *,
        clock: Clock,
        sleep: Callable[[float], None] = time.sleep,
        seed: int = 0,
    ) -> None:
        self._ring = ring
        self._reader = RingReader(ring)
        self._transport = transport
        self._settings = settings
        self._clock = clock
        self._sleep = sleep
        self._jitter = random.Random(seed)  # noqa: S311 - spreads retries, hides nothing
        self._halt = False
        self._pace = Pace(sent_ns=clock.monotonic_ns())

    def halt(self) -> None:
        """Stop soon, leaving the rest in the ring. May be called from any thread or a signal handler."""
        self._halt = True

    def run(self) -> bool:
        """Deliver until the writer is gone and everything is delivered. Says whether it is; if not, the ring keeps the rest."""
        try:
            while not self._halt:
                state = self._state()
                if state is not StreamState.RUNNING:
                    self._finish(state)
                    return True
                if not self._step():
                    self._sleep(_TICK_S)
        except Halted:
            pass
        return False

    def _state(self) -> StreamState:
        """What is known of the writer. Asking whether it is dead first means that nothing can be written after the answer."""
        dead = self._ring.writer_is_dead()
        if self._reader.stopped:
            return StreamState.STOPPED
        return StreamState.KILLED if dead else StreamState.RUNNING

    def _step(self) -> bool:
        """Send what is due: a full batch at once, a part of one after the interval, a heartbeat after its own.

        Says whether a full batch left, so that another one may be due at once.
        """
        settings = self._settings
        is_full = self._reader.is_ready(settings.flush_rows)
        since_ns = self._clock.monotonic_ns() - self._pace.sent_ns
        if not is_full and since_ns < settings.flush_interval_ms * 1_000_000:
            return False
        chunk = self._reader.read(settings.flush_rows)
        if chunk.is_empty and self._is_stuck(chunk.first_seq):
            chunk = self._reader.read_hole()
        if not chunk.is_empty or since_ns >= settings.heartbeat_interval_ms * 1_000_000:
            self._deliver(chunk, StreamState.RUNNING)
        return is_full and not chunk.is_empty

    def _is_stuck(self, seq: int) -> bool:
        """Whether a seq that is not written, though later ones are, has been so for long: its thread will not come back."""
        now = self._clock.monotonic_ns()
        if self._reader.highest_seq() < seq:
            return False
        if self._pace.hole_seq != seq:
            self._pace.hole_seq, self._pace.hole_since_ns = seq, now
        return now - self._pace.hole_since_ns > _STUCK_NS

    def _finish(self, state: StreamState) -> None:
        """Deliver the rest in batches of the usual size, then say how the stream ended."""
        while not (chunk := self._reader.read(self._settings.flush_rows)).is_empty:
            self._deliver(chunk, StreamState.RUNNING)
        # What is left now lies behind a seq that its writer never finished.
        rest = self._reader.read_rest()
        if not rest.is_empty:
            self._deliver(rest, StreamState.RUNNING)
        self._deliver(self._reader.read(1), state)

    def _deliver(self, chunk: Chunk, state: StreamState) -> None:
        """Send a chunk until it is acknowledged, then release it. A refused one is told as a drop instead.

        A chunk over the size of a batch, or over a bound of its reader, goes in halves; a single event over one is a drop.

        Raises:
            Halted: told to stop, or nobody took anything for long after the writer was gone.
        """
        rows = chunk.table.num_rows
        if rows > self._settings.flush_rows:
            self._deliver_halves(chunk, state)
            return
        frame, header = self._encode(chunk, state)
        if rows and _is_too_large(frame):
            if rows > 1:
                self._deliver_halves(chunk, state)
            else:
                self._deliver(_dropped(chunk, Stage.ENCODE, DropReason.TOO_LARGE), state)
            return
        try:
            self._send(frame, header)
        except BatchRejected as error:
            print(f"kvtrail shipper: {self._ring.stream.engine}: batch refused: {error}", file=sys.stderr)  # noqa: T201
            if rows:
                self._deliver(_dropped(chunk, Stage.TRANSPORT, DropReason.REJECTED), state)
                return
        self._pace.sent_ns = self._clock.monotonic_ns()
        if not chunk.is_empty:
            self._reader.release(chunk)

    def _deliver_halves(self, chunk: Chunk, state: StreamState) -> None:
        """Deliver a chunk as two."""
        for half in chunk.halves():
            self._deliver(half, state)

    def _encode(self, chunk: Chunk, state: StreamState) -> tuple[bytes, BatchHeader]:
        """A chunk as a frame."""
        rows = chunk.table.num_rows
        stream = self._ring.stream
        seqs = chunk.table["seq"]
        header = BatchHeader(
            version=batch.VERSION,
            engine=stream.engine,
            epoch=stream.epoch,
            rank=stream.rank,
            first_seq=int(seqs[0].as_py()) if rows else 0,
            last_seq=int(seqs[-1].as_py()) if rows else 0,
            count=rows,
            produced=max(self._reader.highest_seq(), chunk.last_seq),
            clocks=read_clocks(self._clock),
            state=state,
            drops=chunk.drops,
        )
        return batch.encode_batch(header, chunk.table), header

    def _send(self, frame: bytes, header: BatchHeader) -> None:
        """Send one frame until it is acknowledged or refused."""
        for pause_s in _backoff(self._jitter):
            try:
                self._transport.send(frame, header)
                self._transport.flush(_FLUSH_TIMEOUT_S)
            except TransportUnavailable:
                self._check_patience()
                self._sleep(pause_s)
            else:
                return

    def _check_patience(self) -> None:
        """Give up only when told to, or when the writer has been gone for long."""
        now = self._clock.monotonic_ns()
        if self._pace.writer_gone_ns is None and self._state() is not StreamState.RUNNING:
            self._pace.writer_gone_ns = now
        gone_ns = self._pace.writer_gone_ns
        if self._halt or (gone_ns is not None and now - gone_ns > _LINGER_NS):
            raise Halted


def _is_too_large(frame: bytes) -> bool:
    """Whether a reader with the usual bounds would refuse a frame for a size in it."""
    try:
        batch.peek_header(frame)
    except FrameTooLarge:
        return True
    return False


def _dropped(chunk: Chunk, stage: Stage, reason: DropReason) -> Chunk:
    """A chunk without its rows, which are told as drops."""
    seqs = chunk.table["seq"].to_numpy()
    rows = DropRange(stage, reason, int(seqs[0]), int(seqs[-1]), len(seqs))
    return replace(chunk, table=chunk.table.slice(0, 0), drops=(*chunk.drops, rows))


def _backoff(jitter: random.Random) -> Iterator[float]:
    """Pauses that double up to a second, each cut by a random part so that many shippers do not return at once."""
    pause_s = 0.05
    while True:
        yield pause_s * jitter.uniform(0.5, 1.0)
        pause_s = min(pause_s * 2, _LONGEST_BACKOFF_S)


@contextlib.contextmanager
def only_shipper(ring: Path) -> Iterator[bool]:
    """Hold the lock that makes this the one shipper of a ring; yields whether it was free."""
    lock = os.open(lock_path(ring), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(lock)


def lock_path(ring: Path) -> Path:
    """The file whose lock the one shipper of a ring holds."""
    return ring.with_suffix(".lock")


def remove_ring(ring: Path) -> None:
    """Delete a ring that is delivered whole, and the files beside it."""
    for path in (ring, ring.with_suffix(".json"), lock_path(ring)):
        path.unlink(missing_ok=True)


def ship(config: ShipperConfig) -> bool:
    """Deliver a ring to its end, in this process. Says whether all is delivered; then the ring's file is gone."""
    with only_shipper(config.ring) as alone:
        if not alone:
            return False
        if not config.ring.exists():
            remove_ring(config.ring)  # delivered by another one; what was made for this one goes too
            return True
        settings = config.settings
        transport = open_transport(settings.transport, settings.token_file, settings.kafka_options_file)
        shipper = Shipper(open_ring(config.ring), transport, config.settings, clock=SystemClock(), seed=os.getpid())

        def on_signal(_number: int, _frame: FrameType | None) -> None:
            shipper.halt()

        signal.signal(signal.SIGTERM, on_signal)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        done = shipper.run()
        transport.close()
        if done:
            remove_ring(config.ring)
        return done


def main() -> int:
    """Ship the ring that the given configuration names."""
    config = decode_config(Path(sys.argv[1]).read_bytes())
    return 0 if ship(config) else 1


if __name__ == "__main__":
    sys.exit(main())
