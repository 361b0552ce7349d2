"""Runs the reference engine with a recorder attached: what `kvtrail engine run` and `kvtrail demo` share."""

import gc
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from kvtrail_agent.degrade import DegradeReceiver, DegradeSettings
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.settings import AgentSettings
from kvtrail_engine.degrade_controls import EngineControls
from kvtrail_engine.drills.timer import ScheduledDrill
from kvtrail_engine.engine import Engine
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.loadgen.hints import Hints
from kvtrail_engine.run import Progress, RunResult, run_load
from kvtrail_engine.settings import EngineSettings

from kvtrail_cli.output import Advance

DELIVERY_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Session:
    """What a recorded run left: the engine's own figures, and whether everything recorded was delivered, or where it lies."""

    result: RunResult
    epoch: int
    produced: int
    delivered: bool
    undelivered_in: tuple[str, ...] = ()


def run_recorded(
    settings: EngineSettings,
    arrivals: Sequence[Arrival],
    agent: AgentSettings | None,
    advance: Advance,
    *,
    drill: ScheduledDrill | None = None,
    hints: Hints | None = None,
    stop: threading.Event | None = None,
    degrade: DegradeSettings | None = None,
) -> Session:
    """Run a load to its end, with the recorder as the engine's observer, and wait for delivery.

    With `degrade` the engine takes orders to degrade meanwhile; that needs a recorder, since each is told as an event.

    Raises:
        AgentError: the recorder cannot start.
        EngineError: the engine cannot start, or failed.
    """

    def show(progress: Progress) -> None:
        advance(progress.finished, progress.total)

    with ExitStack() as stack:
        recorder = Recorder.start(agent) if agent is not None else None
        observers = [recorder] if recorder is not None else []
        if recorder is not None:
            stack.callback(recorder.close)
        with Engine(settings, observers) as engine, ExitStack() as beside:
            beside.enter_context(frozen_heap())
            if degrade is not None and recorder is not None:
                beside.enter_context(DegradeReceiver(degrade, EngineControls(engine), recorder))
            result = run_load(engine, arrivals, show, drill=drill, hints=hints, stop=stop)
        if recorder is None:
            return Session(result, 0, 0, delivered=True)
        delivered = recorder.close(DELIVERY_TIMEOUT_S)
        undelivered = () if delivered else tuple(str(directory) for directory in recorder.undelivered())
        return Session(result, recorder.stream.epoch, recorder.produced, delivered, undelivered)


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Leave what is loaded by now out of garbage collection meanwhile: a full one over it stops every thread for 0.3 to 0.6 s.

    That is a spike of the process, not of its cache, and tells nothing about what is measured.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
