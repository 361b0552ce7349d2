"""Follows one publisher until it is told to stop: sockets → follower → decoder → recorders. One thread a publisher."""

import logging
import threading
from dataclasses import dataclass
from typing import Final

from kvtrail_schema.clock import Clock, SystemClock

from kvtrail_agent.importers.vllm_events import VllmEvents
from kvtrail_agent.importers.vllm_wire import Dialect
from kvtrail_agent.relay.follow import Follower, Missing, Restarted, Step
from kvtrail_agent.relay.frames import Published
from kvtrail_agent.relay.sockets import Sockets
from kvtrail_agent.relay.streams import StartRecorder, Streams

LOG: Final = logging.getLogger("kvtrail")
_WAIT_MS: Final = 100


@dataclass(slots=True)
class Tally:
    """What a relay has done; written by its thread, read by any."""

    batches: int = 0
    rows: int = 0
    lost_batches: int = 0
    restarts: int = 0
    unreadable: int = 0
    quarantined: int = 0


class Relay:
    """One publisher. `run` returns when `stop` is set, within about a tenth of a second (a replay under way: 2 s).

    Promises: each batch is recorded once, in the publisher's order; what is missing is asked for, and told where it stays
    missing; an engine that began anew has an epoch of its own.
    """

    def __init__(
        self, sockets: Sockets, start: StartRecorder, *, key: bytes, dialect: Dialect, clock: Clock | None = None
    ) -> None:
        self._sockets = sockets
        self._events = VllmEvents(key, dialect)
        self._streams = Streams(start, dialect, clock or SystemClock())
        self._followers: dict[bytes, Follower] = {}
        self._rank = 0
        self.tally = Tally()

    def run(self, stop: threading.Event) -> None:
        """Follow until told to stop. Raises what starting a recorder raises."""
        try:
            while not stop.is_set():
                message = self._sockets.receive(_WAIT_MS)
                if message is not None:
                    self._take(message)
                self.tally.unreadable = self._sockets.unreadable
        finally:
            self._streams.close()
            self._sockets.close()

    def _take(self, message: Published) -> None:
        """One live message, and what it brings with it."""
        follower = self._followers.setdefault(message.topic, Follower(self._sockets.replay))
        for step in follower.take(message):
            self._step(step)
        self.tally.rows = self._streams.rows

    def _step(self, step: Step) -> None:
        """One thing that became known."""
        match step:
            case Restarted():
                self.tally.restarts += 1
                LOG.info("kvtrail: the engine began anew: its blocks before that are gone")
                self._events.restart()
                self._streams.restart()
            case Missing(first, last):
                self.tally.lost_batches += last - first + 1
                LOG.warning("kvtrail: batches %d to %d never came, and the engine has no more of them", first, last)
                self._streams.lost(first, last, self._rank)
            case Published():
                self._batch(step)

    def _batch(self, message: Published) -> None:
        """One batch of events."""
        self.tally.batches += 1
        if message.batch is None:
            decoded = self._events.decode(message.payload)
        else:
            self._rank = message.batch.rank
            decoded = self._events.decode_batch(message.batch)
        self.tally.quarantined += len(decoded.bad)
        self._streams.write(decoded)

    def resident(self) -> frozenset[int]:
        """The blocks on the GPU of the last rank that spoke, by what was told so far; for tests and checks."""
        return frozenset(int(block) for block in self._events.resident(rank=self._rank))
