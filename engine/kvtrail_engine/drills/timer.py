"""Begins and ends a drill at its moments, and tells of both."""

import threading
from dataclasses import dataclass
from functools import partial
from typing import Self

from kvtrail_schema.absent import NO_U8
from kvtrail_schema.enums import Tier

from kvtrail_engine.clock import Clock
from kvtrail_engine.drills.base import Drill
from kvtrail_engine.engine import Engine

TICK_S = 0.05


@dataclass(frozen=True, slots=True)
class ScheduledDrill:
    """A drill, and when: offsets from the start of the load."""

    drill: Drill
    start_ns: int
    end_ns: int


class DrillTimer:
    """A thread of its own while a load runs; leaving the context ends the fault if it still lasts. Without a drill, nothing.

    Precondition: the drill is prepared.
    """

    def __init__(self, engine: Engine, scheduled: ScheduledDrill | None, origin_ns: int, clock: Clock) -> None:
        self._engine = engine
        self._scheduled = scheduled
        self._origin_ns = origin_ns
        self._clock = clock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._scheduled is not None:
            run = partial(self._run, self._scheduled)
            self._thread = threading.Thread(target=run, name="kvtrail-drill", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, scheduled: ScheduledDrill) -> None:
        """The thread's life: wait, strike, wait, stop."""
        drill, engine = scheduled.drill, self._engine
        if self._wait_until_ns(self._origin_ns + scheduled.start_ns):
            return
        self._tell(drill, is_begun=True)
        drill.begin(engine)
        started_ns = self._clock.now_ns()
        try:
            while self._clock.now_ns() < self._origin_ns + scheduled.end_ns and not self._stop.wait(TICK_S):
                drill.tick(engine, (self._clock.now_ns() - started_ns) / 1e9)
        finally:
            drill.end(engine)
            self._tell(drill, is_begun=False)

    def _wait_until_ns(self, at_ns: int) -> bool:
        """Sleep until a moment; True if the load ended before."""
        return self._stop.wait(max(at_ns - self._clock.now_ns(), 0) / 1e9)

    def _tell(self, drill: Drill, *, is_begun: bool) -> None:
        """Emit the fault's beginning or end, on the engine's thread like every event, with this moment's time."""
        emit = self._engine.context.emit.fault_injected if is_begun else self._engine.context.emit.fault_cleared
        tier: Tier = NO_U8 if drill.tier is None else drill.tier
        now_ns = self._clock.now_ns()

        def tell() -> None:
            emit(drill.name, tier, drill.value, now_ns)

        self._engine.call_on_thread(tell)
