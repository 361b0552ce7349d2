"""One planned population: load, span, strengths, and a second and third try where the tail grew too little or too much."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from kvtrail_collector.attribution_tail import choose_quantile
from kvtrail_collector.facts_rows import IntArray

from kvtrail_cli.drill.generated.load import SECOND_NS, Load, drawn_load
from kvtrail_cli.drill.generated.mechanism import FAULTS, Fault, Mechanism, Scene, Span, world_of
from kvtrail_cli.drill.generated.plan import Planned
from kvtrail_cli.drill.generated.recorded import Recorded
from kvtrail_cli.drill.generated.simulate import Trace, simulate
from kvtrail_cli.drill.score import NONE

REQUESTS: Final = (10_000, 12_000)
LIFTS: Final = (0.10, 4.0)
_TRIES: Final = 4
_WARM_UP_NS: Final = 5 * SECOND_NS


@dataclass(frozen=True, slots=True)
class Made:
    """A population, and what is true of it."""

    trace: Trace
    span: Span | None
    strength: float


@dataclass(frozen=True, slots=True)
class _Ground:
    """What stays the same from try to try: the load, where in it the fault lies, and what is drawn."""

    load: Load
    span: Span
    seed: int


def make(plan: Planned, recorded: Recorded, requests: tuple[int, int] = REQUESTS) -> Made:
    """Draw it and run it. Pure; the same plan and recording give the same population."""
    rng = np.random.default_rng((plan.number, 12))
    load = drawn_load(recorded, int(rng.integers(*requests)), rng.uniform(0.85, 1.1), rng)
    if plan.faults == (NONE,):
        scene = Scene(load, world_of(_quiet_world(rng)), Mechanism(), None)
        return Made(simulate(scene, recorded, rng), None, 0.0)
    return _struck(plan, recorded, load, rng)


def _quiet_world(rng: np.random.Generator) -> tuple[str, ...]:
    """Worlds of healthy populations are those of the broken ones."""
    return (("remote-timeout",), ("late-prefetch",), (), ())[int(rng.integers(4))]


def _struck(plan: Planned, recorded: Recorded, load: Load, rng: np.random.Generator) -> Made:
    """A population with faults, whose tail is to grow by something within `LIFTS`."""
    ground = _Ground(load, _span(load, rng), int(rng.integers(2**32)))
    place = rng.random()
    made = _try(plan, recorded, ground, place)
    for _ in range(_TRIES - 1):
        lift = lift_of(made.trace, ground.span)
        if lift < LIFTS[0]:
            place += (1 - place) / 2
        elif lift > LIFTS[1]:
            place /= 2
        else:
            break
        made = _try(plan, recorded, ground, place)
    return made


def _try(plan: Planned, recorded: Recorded, ground: _Ground, place: float) -> Made:
    """Strike with every fault at the same place of its range."""
    rng = np.random.default_rng(ground.seed)
    scene = Scene(ground.load, world_of(plan.faults), Mechanism(), ground.span)
    for name in plan.faults:
        fault = FAULTS[name]
        scene = fault.strike(scene, ground.span, value_at(fault, place), rng)
    return Made(simulate(scene, recorded, rng), ground.span, value_at(FAULTS[plan.faults[0]], place))


def value_at(fault: Fault, place: float) -> float:
    """The strength at a place from 0 to 1 of a fault's range, evenly in its logarithm."""
    return float(fault.low * (fault.high / fault.low) ** place)


def _span(load: Load, rng: np.random.Generator) -> Span:
    """A stretch somewhere in the middle, long enough for a tail."""
    first, last = int(load.arrived_ns[0]), int(load.arrived_ns[-1])
    start = rng.uniform(0.42, 0.58)
    length = rng.uniform(0.18, 0.34)
    return Span(first + int((last - first) * start), first + int((last - first) * (start + length)))


def lift_of(trace: Trace, span: Span) -> float:
    """By how much the tail within a span is longer than before it, as a share."""
    arrived, latency = trace.load.arrived_ns, trace.latency_ns
    inside = latency[span.has(arrived)]
    before = latency[(arrived >= arrived[0] + _WARM_UP_NS) & (arrived < span.start_ns)]
    p = choose_quantile(len(inside), len(before))
    return 0.0 if p is None else _tail_mean(inside, float(p)) / _tail_mean(before, float(p)) - 1


def _tail_mean(latency_ns: IntArray, p: float) -> float:
    """The mean beyond a quantile."""
    return float(np.sort(latency_ns)[int(len(latency_ns) * p) :].mean())
