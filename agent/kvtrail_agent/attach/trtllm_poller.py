"""Follows one TensorRT-LLM engine: drains its cache events each few milliseconds, its figures each second.

The engine's buffer is bounded and drops the oldest: give it `event_buffer_max_size` 8192 or more, and let nobody else read it.
"""

import logging
import threading
from dataclasses import dataclass
from typing import Final

from kvtrail_schema.clock import Clock

from kvtrail_agent.attach.live_rows import LiveRows
from kvtrail_agent.attach.trtllm_sources import TrtllmSource
from kvtrail_agent.errors import AgentError, TransportUnavailable
from kvtrail_agent.importers.decoded import Decoded
from kvtrail_agent.importers.format import Source
from kvtrail_agent.importers.trtllm import TrtllmDecoder

LOG: Final = logging.getLogger("kvtrail")
_SHORTEST_S: Final = 0.005
_LONGEST_S: Final = 0.020
_LONGEST_AWAY_S: Final = 1.0
_GROWTH: Final = 1.5
_FIGURES_NS: Final = 1_000_000_000


@dataclass(slots=True)
class PollerTally:
    """What a poller has done; written by its thread, read by any."""

    polls: int = 0
    events: int = 0
    figures: int = 0
    failures: int = 0


class TrtllmPoller:
    """One engine. `run` returns when `stop` is set; it never raises for anything that the engine does or says.

    Events have the time at which they were read: late by the engine's flush and by the poll, 25 ms at most where it answers.
    """

    def __init__(self, source: TrtllmSource, rows: LiveRows, *, key: bytes, clock: Clock) -> None:
        self._source = source
        self._rows = rows
        self._clock = clock
        self._decoder = TrtllmDecoder(Source(key, clock.wall_ns() >> 10))
        self._figures_ns = 0
        self.tally = PollerTally()

    def run(self, stop: threading.Event) -> None:
        """Poll until told to stop; then end the recorders."""
        pause_s = _SHORTEST_S
        try:
            while not stop.wait(pause_s):
                pause_s = self._pause_after(self._polled(), pause_s)
        finally:
            self._rows.close()

    def poll(self) -> int:
        """Drain once; how much came. Raises `TransportUnavailable` where the engine does not answer."""
        self.tally.polls += 1
        events = self._source.events()
        now_ns = self._clock.monotonic_ns()
        for event in events:
            self._take(event | {"recv_ns": now_ns} if isinstance(event, dict) and "event_id" in event else event)
        self.tally.events += len(events)
        if now_ns - self._figures_ns >= _FIGURES_NS or not self._figures_ns:
            self._figures_ns = now_ns
            figures = self._source.figures()
            self.tally.figures += len(figures)
            for figure in figures:
                self._take(figure)
            self._rows.write(self._decoder.finish())
        return len(events)

    def _take(self, value: object) -> None:
        """One record into its recorder; one that no recorder takes is said, and the next is tried."""
        decoded: Decoded = self._decoder.decode(value)
        self._rows.write(decoded)

    def _polled(self) -> int | None:
        """What came; None where the engine does not answer."""
        try:
            return self.poll()
        except TransportUnavailable as error:
            self.tally.failures += 1
            if self.tally.failures == 1:
                LOG.warning("kvtrail: %s; tried again", error)
            return None
        except AgentError as error:
            self.tally.failures += 1
            LOG.warning("kvtrail: %s", error)
            return None

    @staticmethod
    def _pause_after(came: int | None, before_s: float) -> float:
        """How long to wait: little while events come, a while when there are none, longer where nobody answers."""
        if came is None:
            return min(before_s * 2, _LONGEST_AWAY_S)
        return _SHORTEST_S if came else min(before_s * _GROWTH, _LONGEST_S)
