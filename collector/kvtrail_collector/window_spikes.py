"""All slow stretches of a run, to choose from, where `window` searches for the one that is no chance (LEDGER §5, step 8).

Of two spikes each makes the other look like chance: what is shuffled holds both. So a list asks less, and says less: stretches
that are the most unusual ones between those before, and much slower than all the rest. What made one slow, and whether that
may be chance, is for attribution to say, which compares it with the time around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kvtrail_collector.facts_rows import BoolArray, Interval
from kvtrail_collector.population import Population
from kvtrail_collector.window_grid import Grid
from kvtrail_collector.window_scan import MAX_BINS, MIN_BINS, MIN_REQUESTS, SECOND_NS, refine
from kvtrail_collector.window_search import warm_up_end_ns

MOST_SPIKES: Final = 8
LEAST_REQUESTS: Final = 20
SLOW_FROM_RATIO: Final = 1.5
SLOW_FROM_NS: Final = 5_000_000
QUANTILE: Final = 0.95
_THRESHOLD_QUANTILES: Final = (0.75, 0.9, 0.95, 0.98)
_TOGETHER_SHARE: Final = 0.1
_EARLIEST_NS: Final = -(2**63)
_LATEST_NS: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Stretches:
    """Slow stretches in the order of time, and the P95 of the requests outside everything that looked unusual."""

    found: tuple[Interval, ...]
    usual_ns: float


def find_stretches(population: Population) -> Stretches:
    """At most `MOST_SPIKES` stretches that are at least half as slow again at P95 as all the rest, and by 5 ms. Pure;
    a few milliseconds, and a microsecond a request.
    """
    proposed = _proposed(population) if len(population) else []
    inside = np.zeros(len(population), dtype=np.bool_)
    for one in proposed:
        inside |= _within(population, one)
    if inside.all():
        return Stretches((), 0.0)
    usual_ns = float(np.quantile(population.latency_ns[~inside], QUANTILE))
    least_ns = max(SLOW_FROM_RATIO * usual_ns, usual_ns + SLOW_FROM_NS)
    return Stretches(tuple(_together([one for one in proposed if _is_slow(population, one, least_ns)])), usual_ns)


def _is_slow(population: Population, one: Interval, least_ns: float) -> bool:
    """Whether a stretch has requests enough, and those at its P95 took so long."""
    own = population.latency_ns[_within(population, one)]
    return len(own) >= LEAST_REQUESTS and float(np.quantile(own, QUANTILE)) >= least_ns


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A stretch, the piece of the run in which it is the most unusual one, and how unusual."""

    score: float
    stretch: Interval
    piece: Population

    def beside(self) -> tuple[Population, Population]:
        """What is left of the piece on both sides."""
        start, end = self.stretch
        return self.piece.arrived_in(_EARLIEST_NS, start), self.piece.arrived_in(end, _LATEST_NS)


def _proposed(population: Population) -> list[Interval]:
    """The most unusual stretch of the run, then of what is left on both sides of those before."""
    waiting = _proposals([population.arrived_in(warm_up_end_ns(population), _LATEST_NS)])
    found = list[Interval]()
    while waiting and len(found) < MOST_SPIKES:
        best = waiting.pop(max(range(len(waiting)), key=lambda place: waiting[place].score))
        found.append(best.stretch)
        waiting += _proposals(best.beside())
    return sorted(found)


def _proposals(pieces: Sequence[Population]) -> list[_Proposal]:
    """One for each piece that is large enough."""
    return [found for piece in pieces if (found := _most_unusual(piece)) is not None]


def _most_unusual(piece: Population) -> _Proposal | None:
    """The stretch with the highest score of all thresholds; None of too few requests."""
    arrived_ns, latency_ns = piece.arrived_ns, piece.latency_ns
    span_ns = int(arrived_ns[-1] - arrived_ns[0]) if len(piece) else 0
    if len(piece) < MIN_REQUESTS or span_ns == 0:
        return None
    bins = int(min(max(span_ns // SECOND_NS, MIN_BINS), MAX_BINS))
    edges = np.linspace(arrived_ns[0], int(arrived_ns[-1]) + 1, bins + 1).astype(np.int64)
    thresholds = np.quantile(latency_ns, _THRESHOLD_QUANTILES).astype(np.int64)
    found = zip(Grid.of(arrived_ns, latency_ns, edges, thresholds).best(), thresholds.tolist(), strict=True)
    best, threshold = max(found, key=lambda one: one[0].score)
    stretch = refine(arrived_ns, latency_ns > threshold, int(edges[best.low]), int(edges[best.high]), span_ns // bins)
    return _Proposal(best.score, stretch, piece)


def _together(stretches: Sequence[Interval]) -> Iterator[Interval]:
    """Stretches with hardly anything between them as one: what falters for a moment is not over."""
    waiting: Interval | None = None
    for start, end in stretches:
        if waiting is not None and start - waiting[1] <= _TOGETHER_SHARE * max(end - start, waiting[1] - waiting[0]):
            waiting = waiting[0], end
            continue
        if waiting is not None:
            yield waiting
        waiting = start, end
    if waiting is not None:
        yield waiting


def _within(population: Population, stretch: Interval) -> BoolArray:
    """Which requests arrived in a stretch."""
    return np.asarray((population.arrived_ns >= stretch[0]) & (population.arrived_ns < stretch[1]))
