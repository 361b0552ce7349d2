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
from kvtrail_cli.drill.score import MIX, NONE

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
    """A population with faults, whose tail is to grow by something within `LIFTS`; where the mix shifts too, by their doing."""
    ground = _Ground(load, _span(load, rng), int(rng.integers(2**32)))
    places = _Places(rng.random(), plan.faults)
    made = _try(plan, recorded, ground, places)
    for _ in range(_TRIES - 1):
        lift = _lift_of_faults(plan, recorded, ground, places, made)
        if LIFTS[0] <= lift <= LIFTS[1]:
            break
        places = places.harder() if lift < LIFTS[0] else places.milder()
        made = _try(plan, recorded, ground, places)
    return made


class _Places:
    """Where in their ranges all faults are struck; a shift beside them has a place of its own, and gives way to them."""

    def __init__(self, place: float, faults: tuple[str, ...], shift: float | None = None) -> None:
        self.place, self._faults, self._shift = place, faults, place if shift is None else shift

    def of(self, fault: str) -> float:
        """From 0 to 1."""
        return self._shift if fault == MIX and len(self._faults) > 1 else self.place

    def harder(self) -> "_Places":
        """Half way to the strongest, and half the shift."""
        return _Places(self.place + (1 - self.place) / 2, self._faults, self._shift / 2)

    def milder(self) -> "_Places":
        """Half way to the mildest."""
        return _Places(self.place / 2, self._faults, self._shift)


def _lift_of_faults(plan: Planned, recorded: Recorded, ground: _Ground, places: _Places, made: Made) -> float:
    """By how much the tail is longer than before the span; beside a shift, than the shift alone makes it."""
    lift = lift_of(made.trace, ground.span)
    if MIX not in plan.faults or len(plan.faults) == 1:
        return lift
    alone = _try(plan, recorded, ground, places, struck=(MIX,))
    return (1 + lift) / (1 + lift_of(alone.trace, ground.span)) - 1


def _try(plan: Planned, recorded: Recorded, ground: _Ground, places: _Places, struck: tuple[str, ...] | None = None) -> Made:
    """Strike with every fault, or with those that are named, in the world of all."""
    rng = np.random.default_rng(ground.seed)
    scene = Scene(ground.load, world_of(plan.faults), Mechanism(), ground.span)
    for name in plan.faults if struck is None else struck:
        fault = FAULTS[name]
        scene = fault.strike(scene, ground.span, value_at(fault, places.of(name)), rng)
    return Made(simulate(scene, recorded, rng), ground.span, value_at(FAULTS[plan.faults[0]], places.place))


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
