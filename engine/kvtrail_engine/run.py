"""Running a load against an engine, and what came of it."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from contextlib import ExitStack
from dataclasses import dataclass, field

from kvtrail_schema.enums import Tier

from kvtrail_engine.clock import Clock, SystemClock
from kvtrail_engine.drills.timer import DrillTimer, ScheduledDrill
from kvtrail_engine.engine import Engine
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.loadgen.hints import Hints
from kvtrail_engine.loadgen.replay import replay
from kvtrail_engine.request import Outcome, RequestHandle, RequestResult

PROGRESS_EVERY = 16


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a load is."""

    elapsed_ns: int
    submitted: int
    finished: int
    total: int


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a load; read the figures only beside `device` and `floors`."""

    device: str
    floors: str
    started_ns: int
    ended_ns: int
    results: tuple[RequestResult, ...]
    """In order of submission."""
    restored_blocks: dict[Tier, int] = field(default_factory=dict)
    computed_tokens: int = 0

    @property
    def ttft_ns(self) -> list[int]:
        """Times to the first token of those that got there, in order of submission."""
        return [result.ttft_ns for result in self.results if result.ttft_ns is not None]

    @property
    def tpot_ns(self) -> list[int]:
        """Mean times from token to token of those that got two."""
        return [result.tpot_ns for result in self.results if result.tpot_ns is not None]

    def count(self, outcome: Outcome) -> int:
        """How many requests ended so."""
        return sum(result.outcome is outcome for result in self.results)


def run_load(
    engine: Engine,
    arrivals: Sequence[Arrival],
    progress: Callable[[Progress], None] | None = None,
    *,
    drill: ScheduledDrill | None = None,
    hints: Hints | None = None,
    stop: threading.Event | None = None,
    drain_timeout_s: float = 60.0,
    clock: Clock | None = None,
) -> RunResult:
    """Replay a load in real time on the calling thread, wait for its answers, and sum up.

    Blocks for the load's length and at most `drain_timeout_s` more; requests that are not done by then are called off.
    Setting `stop` ends it early. `hints` announce each arrival before it comes. `progress` is called on this thread once in a
    while. The drill's own requests are not among the results.

    Raises:
        EngineFailedError: the engine ended by a defect.
        SettingsError: the drill needs what the engine's settings do not give.
    """
    clock = clock or SystemClock()
    stop = stop or threading.Event()
    if drill is not None:
        drill.drill.prepare(engine)
    handles: list[RequestHandle] = []
    start_ns = clock.now_ns()

    def note(handle: RequestHandle) -> None:
        handles.append(handle)
        if progress is not None and len(handles) % PROGRESS_EVERY == 0:
            finished = sum(known.future.done() for known in handles)
            progress(Progress(clock.now_ns() - start_ns, len(handles), finished, len(arrivals)))

    with ExitStack() as stack:
        if hints is not None:
            stack.callback(hints.close)
            hints.follow(engine, arrivals, start_ns, clock)
        stack.enter_context(DrillTimer(engine, drill, start_ns, clock))
        replay(arrivals, engine.submit, clock=clock, start_ns=start_ns, on_submitted=note, stop=stop)
        _drain(handles, drain_timeout_s)
    result = _sum_up(engine, [handle.result(drain_timeout_s) for handle in handles], start_ns, clock.now_ns())
    if progress is not None:
        progress(Progress(result.ended_ns - start_ns, len(handles), len(handles), len(arrivals)))
    return result


def _drain(handles: Sequence[RequestHandle], timeout_s: float) -> None:
    """Wait for what is open, then call off what still is."""
    _, late = wait([handle.future for handle in handles], timeout_s)
    for handle in handles:
        if handle.future in late:
            handle.cancel()
    wait([handle.future for handle in handles], timeout_s)


def _sum_up(engine: Engine, results: Sequence[RequestResult], start_ns: int, end_ns: int) -> RunResult:
    """Totals over the results."""
    below = [tier for tier in engine.context.pools if tier is not Tier.GPU]
    restored: dict[Tier, int] = {tier: sum(result.restored.get(tier, 0) for result in results) for tier in below}
    return RunResult(
        device=engine.device_label,
        floors=engine.settings.floors_text(),
        started_ns=start_ns,
        ended_ns=end_ns,
        results=tuple(results),
        restored_blocks=restored,
        computed_tokens=sum(result.computed_tokens for result in results),
    )
