"""How slow requests are, in two ways: in nanoseconds, and as a multiple of what is usual for requests of their kind.

The first sees all that costs latency. The second sees what the first dilutes: where very many quick requests join, few of all
are slow, though everybody is slower than usual.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from kvtrail_collector.attribution_strata import cells_of, match
from kvtrail_collector.facts_rows import BoolArray, IntArray, Interval
from kvtrail_collector.population import Population

MIN_SPREAD: Final = 0.6
"""Kinds whose requests all came within a shorter share of the time have nothing to be compared with outside it."""
SLOW_QUANTILE: Final = 0.95
MOST_CAUSES: Final = 8
_ENDS: Final = (0.05, 0.95)


@dataclass(frozen=True, slots=True)
class Series:
    """Requests in the order of arrival, and how slow each was."""

    arrived_ns: IntArray
    latency_ns: IntArray

    def without(self, stretch: Interval) -> "Series":
        """What is left without a stretch, the gap closed."""
        start, end = stretch
        kept = (self.arrived_ns < start) | (self.arrived_ns >= end)
        arrived = self.arrived_ns[kept]
        return Series(np.where(arrived >= end, arrived - (end - start), arrived), self.latency_ns[kept])


def series_of(population: Population) -> list[Series]:
    """Requests as they are and, where they are of several kinds, as multiples of the median of their kind. Milliseconds."""
    whole = Series(population.arrived_ns, population.latency_ns)
    cells = cells_of(population.prompt_tokens, population.model, population.tenant)
    strata = match(cells, cells)
    return [whole] if strata.count < 2 else [whole, _relative(whole, strata.window, strata.count)]  # noqa: PLR2004  # several


def cause_series(population: Population) -> list[Series]:
    """What requests spent on each of the causes that the slow ones spent most on, where that is something at all."""
    slow = population.latency_ns >= np.quantile(population.latency_ns, SLOW_QUANTILE)
    spent = population.amounts_ns[slow].sum(axis=0)
    ranked = np.argsort(-spent, kind="stable")[:MOST_CAUSES]
    return [Series(population.arrived_ns, population.amounts_ns[:, column]) for column in ranked.tolist() if spent[column]]


def _relative(whole: Series, stratum: IntArray, count: int) -> Series:
    """Latencies as they were if every kind had the median of all."""
    usual, kept = float(np.median(whole.latency_ns)), np.zeros(len(stratum), dtype=np.bool_)
    relative = np.zeros(len(stratum), dtype=np.float64)
    for number in range(count):
        own = stratum == number
        if _is_spread(whole.arrived_ns, own):
            kept |= own
            relative[own] = whole.latency_ns[own] * (usual / max(float(np.median(whole.latency_ns[own])), 1.0))
    return Series(whole.arrived_ns[kept], relative[kept].astype(np.int64))


def _is_spread(arrived_ns: IntArray, own: BoolArray) -> bool:
    """Whether requests of a kind came nearly all the time."""
    first, last = np.quantile(arrived_ns[own], _ENDS)
    return bool(last - first >= MIN_SPREAD * float(arrived_ns[-1] - arrived_ns[0]))
