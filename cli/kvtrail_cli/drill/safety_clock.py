"""Drill: the wall clock of the host is set, hours on and then further back, under an engine with stored blocks."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from kvtrail_engine.engine import Engine
from kvtrail_engine.proof import sink
from kvtrail_engine.request import RetentionRule
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import ClockStepped, Event, RequestArrived, RequestFinished, TransferEnd
from kvtrail_schema.identity import RequestId

from kvtrail_cli.drill.safety_log import answer, ask, logged, result_of, small_engine
from kvtrail_cli.drill.safety_shapes import SafetyDrill

_HOUR_NS: Final = 3_600_000_000_000
_STEPS_H: Final = [6, -30]
_STEPS_NS: Final = [hours * _HOUR_NS for hours in _STEPS_H]
_NOTICED_S: Final = 0.4
"""Some beats of the recorder, which look for a step."""


class SetClock(SystemClock):
    """The clocks of this machine, but for a wall clock that can be set: what an administrator, or a lost time server, does."""

    def __init__(self) -> None:
        self._offset_ns = 0

    def wall_ns(self) -> int:
        """Wall time as it was set."""
        return super().wall_ns() + self._offset_ns

    def step(self, by_ns: int) -> None:
        """Set it on, or back."""
        self._offset_ns += by_ns


def clock_step(folder: Path) -> SafetyDrill:
    """Hours on, and further back: nothing lasts longer or shorter for it, and what is stored is read, or computed again."""
    clock = SetClock()
    kept, ending = ask(1), replace(ask(2), retention_rules=(RetentionRule(expires_after_ns=_HOUR_NS),))
    with logged(folder, clock) as log, Engine(small_engine(folder), log.observers, wall_ns=clock.wall_ns) as engine:
        began_ns = time.monotonic_ns()
        answers = [[answer(engine, spec) for spec in (kept, ending)]]
        stepped_ns = time.monotonic_ns()
        for step_ns in _STEPS_NS:
            sink(engine, Tier.NVME)
            engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
            clock.step(step_ns)
            time.sleep(_NOTICED_S)
            answers.append([answer(engine, spec) for spec in (kept, ending)])
        lasted_ns = time.monotonic_ns() - began_ns
    told = () if log.file is None else log.file.events
    steps = [event for event in told if isinstance(event, ClockStepped)]
    touched = next((event for event in told if event.t_ns > stepped_ns), None)
    acted = next((event for event in told if isinstance(event, RequestFinished) and event.t_ns > stepped_ns), None)
    found = {
        "each step is told, with its size": [round(event.value / _HOUR_NS) for event in steps] == _STEPS_H,
        "nothing lasts longer for it, or shorter than nothing": _are_sound(told, lasted_ns),
        "what is stored is read": all(first.restored.get(Tier.NVME, 0) > 0 for first, _ in answers[1:]),
        "what had an end by that clock is computed again": not answers[1][1].restored,
        "answers are the same": all([each.output for each in both] == [each.output for each in answers[0]] for both in answers),
    }
    expected = "no duration moves, stored blocks are read or computed again, and the step is told"
    moments = (touched, steps[0] if steps else None, acted)
    return result_of("clock-step", expected, found, moments, log, shows=("CLOCK_STEP", "LEASE_EXPIRED"))


def _are_sound(told: Iterable[Event], lasted_ns: int) -> bool:
    """Whether every request and every part of a transfer lasted at least nothing, and at most as long as the drill."""
    arrived: dict[RequestId, int] = {}
    spans: list[int] = []
    for event in told:
        if isinstance(event, RequestArrived):
            arrived[event.req] = event.t_ns
        elif isinstance(event, RequestFinished):
            spans.append(event.t_ns - arrived[event.req])
        elif isinstance(event, TransferEnd):
            parts = (event.queue_ns, event.alloc_ns, event.submit_ns, event.io_ns, event.copy_ns, event.sync_ns)
            spans += [part for part in parts if part is not None]
    return bool(spans) and all(0 <= span <= lasted_ns for span in spans)
