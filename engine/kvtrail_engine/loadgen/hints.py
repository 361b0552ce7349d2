"""Announces the turns of a load to the engine ahead of time, as a client does that sees its user typing."""

import threading
from collections.abc import Sequence
from typing import Self

from kvtrail_engine.clock import Clock
from kvtrail_engine.engine import Engine
from kvtrail_engine.loadgen.arrivals import Arrival

SLICE_NS = 20_000_000


class Hints:
    """A thread of its own while a load runs: each arrival is hinted at `lead_ns` before it comes.

    `lead_ns` may be changed at any time; it is read as time goes on, so arrivals between two leads are hinted at once.
    With `promised_ns` a hint says that there is at least so much time left, whatever there is.
    """

    def __init__(self, lead_ns: int) -> None:
        self.lead_ns = lead_ns
        self.promised_ns = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def follow(self, engine: Engine, arrivals: Sequence[Arrival], start_ns: int, clock: Clock) -> Self:
        """Begin; the load starts at `start_ns` on the clock."""
        self._thread = threading.Thread(
            target=self._run, args=(engine, arrivals, start_ns, clock), name="kvtrail-hints", daemon=True
        )
        self._thread.start()
        return self

    def close(self) -> None:
        """Hint no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, engine: Engine, arrivals: Sequence[Arrival], start_ns: int, clock: Clock) -> None:
        """The thread's life."""
        for arrival in arrivals:
            at_ns = start_ns + arrival.at_ns
            while (left_ns := at_ns - self.lead_ns - clock.now_ns()) > 0:
                if self._stop.wait(min(left_ns, SLICE_NS) / 1e9):
                    return
            spec = arrival.spec
            engine.hint(session_of(spec.name), spec, max(at_ns - clock.now_ns(), self.promised_ns, 0))


def session_of(name: str) -> str:
    """The conversation that a turn belongs to: turns are numbered behind the last hyphen."""
    return name.rpartition("-")[0] or name
