"""What is made of windows of steps, recorded and not in turn: the overhead with its interval, and the rate it was taken at."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

import numpy as np

from kvtrail_cli.bench.agent_shapes import Overhead

WINDOW_STEPS: Final = 100
_DRAWS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Window:
    """A hundred steps: whether they were recorded, and what they took of the engine's thread."""

    recorded: bool
    thread_ns: int
    steps: int
    events: int


def overhead_of(windows: list[Window]) -> Overhead:
    """The engine's thread time a step, recorded against not, over neighbouring windows; bootstrap of the pairs."""
    costs = [(window.recorded, window.thread_ns / window.steps) for window in windows if window.steps]
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
    """The rate at which the overhead was taken, a second of the engine's thread."""
    recorded = [window for window in windows if window.recorded]
    return sum(window.events for window in recorded) * 1e9 / max(1, sum(window.thread_ns for window in recorded))
