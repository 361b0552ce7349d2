"""A reference that can be trusted: spells in it are cut out, and one that grows is refused (LEDGER §5, step 3).

What a window is compared with must be a quiet time. A reference with a fault in it hides the next fault; one that grows makes
any window after it look ill.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtrail_collector.bootstrap_block import correlation_length
from kvtrail_collector.facts_rows import IntArray, Interval
from kvtrail_collector.population import Population
from kvtrail_collector.window_scan import MIN_REQUESTS, find_spells
from kvtrail_collector.window_series import Series

FloatArray = NDArray[np.float64]

SURE_P_VALUE: Final = 0.005
SPELL_FROM_RATIO: Final = 1.25
SPELL_FROM_NS: Final = 5_000_000
MOST_SPELLS: Final = 3
STEP_END_SHARE: Final = 0.1
TREND_P_VALUE: Final = 0.01
TREND_FROM_RATIO: Final = 1.25
TREND_BINS: Final = 60
TREND_SHUFFLES: Final = 399
_QUANTILE: Final = 0.95
_LEAST_BINS: Final = 12


@dataclass(frozen=True, slots=True)
class Quiet:
    """A stretch of time that can serve, what was cut from it, and why it cannot serve after all, if so."""

    stretch: Interval
    notes: tuple[str, ...] = ()
    refused: str | None = None


def quiet_part(population: Population, stretch: Interval, *, known: Sequence[Interval] = (), seed: int) -> Quiet:
    """The last part of a stretch without a spell, refused if it grows all the time. Pure; under 0.3 s.

    `known` are spells that somebody has found already.
    """
    notes: list[str] = []
    for spell in known:
        if spell[0] < stretch[1] and spell[1] > stretch[0]:
            notes.append(_left_out(spell))
            stretch = _without(population, stretch, spell)
    for _ in range(MOST_SPELLS):
        found = _spell_in(population, stretch, seed)
        if found is None:
            break
        if _is_a_step(population, stretch, found, seed):
            notes.append("the reference became slower on its way: the part since then was used")
            stretch = (found[0], stretch[1])
            break
        notes.append(_left_out(found))
        stretch = _without(population, stretch, found)
    growth = trend_of(population.arrived_in(*stretch), seed=seed)
    if growth is None:
        return Quiet(stretch, tuple(notes))
    if growth < 1:
        # What still settles hides a fault but invents none: the part that has settled most serves.
        half = ((stretch[0] + stretch[1]) // 2, stretch[1])
        return Quiet(half, (*notes, "the reference became faster all the time: its last half was used"))
    return Quiet(
        stretch, tuple(notes), f"the reference has a trend: its tail grew by {growth - 1:.0%} while it lasted; give a quiet one"
    )


def _is_a_step(population: Population, stretch: Interval, spell: Interval, seed: int) -> bool:
    """Whether what looks like a spell is how it is by now: it lasts for more than half of the time, and until the end.

    What came before it would be no measure. Neither part grows: where both do, it is a trend and no step.
    """
    since, before = population.arrived_in(spell[0], stretch[1]), population.arrived_in(stretch[0], spell[0])
    lasts = stretch[1] - spell[1] <= STEP_END_SHARE * (stretch[1] - stretch[0]) and len(since) > len(before)
    return lasts and all(trend_of(part, seed=seed) is None for part in (since, before))


def _left_out(spell: Interval) -> str:
    """What is said of a spell that was cut out."""
    return f"the reference had a spell of {(spell[1] - spell[0]) / 1e9:.0f} s in it, which was left out"


def _spell_in(population: Population, stretch: Interval, seed: int) -> Interval | None:
    """The costliest spell in a stretch that is no chance, and slower by enough to matter."""
    own = population.arrived_in(*stretch)
    for spell in find_spells([Series(own.arrived_ns, own.latency_ns)], seed=seed):
        inside = (own.arrived_ns >= spell.start_ns) & (own.arrived_ns < spell.end_ns)
        if spell.p_value > SURE_P_VALUE or not inside.any() or inside.all():
            continue
        here, there = (float(np.quantile(own.latency_ns[part], _QUANTILE)) for part in (inside, ~inside))
        if here >= SPELL_FROM_RATIO * there and here - there >= SPELL_FROM_NS:
            return spell.start_ns, spell.end_ns
    return None


def _without(population: Population, stretch: Interval, spell: Interval) -> Interval:
    """What lies after a spell, or before it where that is more by far: the nearer the reference, the more alike the times."""
    after, before = (min(spell[1], stretch[1]), stretch[1]), (stretch[0], max(spell[0], stretch[0]))
    return after if 2 * len(population.arrived_in(*after)) >= len(population.arrived_in(*before)) else before


def trend_of(population: Population, *, seed: int) -> float | None:
    """By what factor the tail changed from the first third to the last, where that is a trend; None where it is not."""
    if len(population) < MIN_REQUESTS:
        return None
    first, last = (float(np.quantile(part, _QUANTILE)) for part in _outer_thirds(population))
    growth = last / max(first, 1.0)
    if 1 / TREND_FROM_RATIO < growth < TREND_FROM_RATIO or abs(last - first) < SPELL_FROM_NS:
        return None
    series = _series(population)
    return growth if len(series) >= _LEAST_BINS and _chance_of_trend(series, seed) <= TREND_P_VALUE else None


def _outer_thirds(population: Population) -> tuple[IntArray, IntArray]:
    """The latencies of the first and of the last third of the time."""
    start, end = int(population.arrived_ns[0]), int(population.arrived_ns[-1]) + 1
    third = (end - start) // 3
    return population.arrived_in(start, start + third + 1).latency_ns, population.arrived_in(end - third - 1, end).latency_ns


def _series(population: Population) -> FloatArray:
    """The upper quartile of latency by bins of equal time; bins in which nothing arrived are left out."""
    edges = np.linspace(population.arrived_ns[0], population.arrived_ns[-1] + 1, TREND_BINS + 1)
    bounds = np.searchsorted(population.arrived_ns, edges)
    parts = (population.latency_ns[low:high] for low, high in pairwise(bounds.tolist()) if high > low)
    return np.array([float(np.quantile(part, 0.75)) for part in parts])


def _chance_of_trend(series: FloatArray, seed: int) -> float:
    """How often the same values, kept together as they keep company, rise or fall as steadily in another order."""
    rank = np.argsort(np.argsort(series)).astype(np.float64)
    time = np.arange(len(series)) - (len(series) - 1) / 2
    slope = float(rank @ time / (time @ time))
    block = max(int(np.ceil(correlation_length(rank - slope * time))), 1)
    stretches = np.arange(len(series)) // block
    order = np.random.default_rng(seed).random((TREND_SHUFFLES, int(stretches[-1]) + 1))
    mixed = rank[np.argsort(order[:, stretches], axis=1, kind="stable")]
    as_steady = np.abs(mixed @ time) >= abs(float(rank @ time))
    return float((1 + as_steady.sum()) / (1 + TREND_SHUFFLES))
