"""What recording costs a real engine: one run, in which the recorder is switched every hundred steps."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from kvtrail_engine.demo import demo_requests, demo_settings
from kvtrail_engine.engine import Engine
from kvtrail_engine.run import run_load
from kvtrail_engine.settings import StepSettings

from kvtrail_cli.bench.agent_shapes import Overhead

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kvtrail_schema.emitter import Emitter

    from kvtrail_cli.output import Advance

WINDOW_STEPS: Final = 100
_DRAWS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Window:
    """A hundred steps: whether they were recorded, and what they took of the engine's thread."""

    recorded: bool
    thread_ns: int
    wall_ns: int
    tokens: int
    events: int


@dataclass(slots=True)
class Switch:
    """An observer that lets events through to a recorder in every other window. Used by the engine's thread alone.

    Off, each kind is the engine's own no-op: what is compared is a recorder with none.
    """

    recorder: Emitter
    produced: Callable[[], int]
    windows: list[Window] = field(default_factory=list)
    _steps: int = 0
    _tokens: int = 0
    _begin: tuple[int, int, int] = (0, 0, 0)
    _recorded: bool = True

    def __getattr__(self, name: str) -> Callable[..., int]:
        """Any other kind, as it goes now. Looked up at each call, on and off."""
        return getattr(self.recorder, name) if self._recorded else _nothing

    def step_started(self, step: int, t_ns: int) -> int:
        """A step begins; every so many of them the switch is turned."""
        if self._steps % WINDOW_STEPS == 0:
            self._turn()
        self._steps += 1
        return self.recorder.step_started(cast("Any", step), t_ns) if self._recorded else 0

    def step_finished(self, step: int, tokens: int, *rest: Any) -> int:
        """A step ended, with so many tokens."""
        self._tokens += tokens
        return self.recorder.step_finished(cast("Any", step), tokens, *rest) if self._recorded else 0

    def _turn(self) -> None:
        """End a window and begin the other kind of it."""
        now = (time.thread_time_ns(), time.perf_counter_ns(), self.produced())
        if self._steps:
            took = [after - before for after, before in zip(now, self._begin, strict=True)]
            self.windows.append(Window(self._recorded, took[0], took[1], self._tokens, took[2]))
        self._begin, self._tokens, self._recorded = now, 0, not self._recorded


def _nothing(*_args: Any, **_kwargs: Any) -> int:
    """Takes an event and forgets it."""
    return 0


def engine_windows(
    recorder: Emitter, produced: Callable[[], int], folder: Path, engine_s: float, advance: Advance
) -> list[Window]:
    """The windows of one run of the reference engine, under more load than it can serve and without floors on its steps."""
    settings = demo_settings(1, folder)
    settings = replace(settings, step=StepSettings(budget_tokens=256, max_sequences=48))
    switch = Switch(recorder, produced)
    with Engine(settings, [cast("Emitter", switch)]) as engine:
        run_load(engine, demo_requests(1, engine_s, 150.0), lambda progress: advance(progress.finished, progress.total))
    return switch.windows[2:]  # the first ones warm up


def overhead_of(windows: list[Window]) -> Overhead:
    """The engine's thread time a token, recorded against not, over neighbouring windows; bootstrap of the pairs."""
    costs = [(window.recorded, window.thread_ns / window.tokens) for window in windows if window.tokens]
    pairs = [
        100 * ((one if recorded else other) / (other if recorded else one) - 1)
        for (recorded, one), (_, other) in itertools.pairwise(costs)
    ]
    if not pairs:
        return Overhead(median=0.0, low=-100.0, high=100.0)  # nothing was seen, so nothing is claimed
    draw = np.random.default_rng(1)
    medians = np.median(draw.choice(pairs, (_DRAWS, len(pairs))), axis=1)
    low, high = np.quantile(medians, (0.05, 0.95))
    return Overhead(median=float(np.median(pairs)), low=float(low), high=float(high))


def events_per_s(windows: list[Window]) -> float:
    """The rate at which the overhead was taken."""
    recorded = [window for window in windows if window.recorded]
    return sum(window.events for window in recorded) * 1e9 / max(1, sum(window.wall_ns for window in recorded))
