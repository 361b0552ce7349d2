"""The search for the stretch of time in which slow requests are unusually many (LEDGER §5, step 8).

The statistic is that of a scan over windows of all lengths (Kulldorff, A spatial scan statistic, 1997), for several thresholds
of "slow". A window that was searched for is judged against the best window that the same search finds in the same data with its
stretches in another order: what is short or scattered survives that, a spell does not. Stretches are as long as slow requests
keep company outside the suspected window, so that a system that is restless by nature does not look ill.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from kvtrail_collector.bootstrap_block import correlation_length
from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.window_grid import MAX_WINDOW_SHARE, Best, Grid, shuffled_orders
from kvtrail_collector.window_series import Series

FloatArray = NDArray[np.float64]

THRESHOLD_QUANTILES: Final = (0.75, 0.9, 0.95, 0.98, 0.995)
MAX_BINS: Final = 240
MIN_BINS: Final = 60
BLOCK_BINS: Final = 3
COMPANY: Final = 2.0
MOST_BLOCK_SHARE: Final = 0.05
"""Of ten stretches, two or three slow ones come to lie together too often by chance for anything to be found in a short run."""
MIN_REQUESTS: Final = 100
SHUFFLES: Final = 798
SHUFFLES_AT_ONCE: Final = 57
ENOUGH: Final = 20
SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Spell:
    """A window that was searched for: its borders, the latency above which requests count as slow, its p-value.

    `cost` ranks spells by what they cost the tail: how much more its requests spent between the run's P95 and P99
    than those outside, on average, times the root of their number: neither a sliver, nor one hiccup, nor a stretch with
    calm in it shall lead.
    """

    start_ns: int
    end_ns: int
    threshold_ns: int
    p_value: float
    cost: float


def find_spells(series: Sequence[Series], *, seed: int) -> list[Spell]:
    """The most unusual stretch for each way of being slow, with how unusual it is; the costliest first.

    None where there are too few requests to say. `series` are one or more ways to see the same requests, the first of which
    has all of them. p-values count that several were tried. Pure; under half a second whatever the number of requests; the
    same seed gives the same answer.
    """
    edges = _edges(series[0].arrived_ns)
    scans = [] if edges is None else [_Scan.of(one, edges) for one in series if len(one.arrived_ns) >= MIN_REQUESTS]
    if not scans or edges is None:
        return []
    best = [scan.grid.best() for scan in scans]
    p_values = iter(_p_values([scan.grid for scan in scans], best, np.random.default_rng(seed)))
    spells = [
        scan.spell(one, threshold, next(p_values))
        for scan, own in zip(scans, best, strict=True)
        for one, threshold in zip(own, scan.thresholds.tolist(), strict=True)
    ]
    return sorted(spells, key=lambda spell: -spell.cost)


def _edges(arrived_ns: IntArray) -> IntArray | None:
    """Bins of equal time; None where there are too few requests for any."""
    span = int(arrived_ns[-1] - arrived_ns[0]) if len(arrived_ns) else 0
    if len(arrived_ns) < MIN_REQUESTS or span == 0:
        return None
    bins = int(min(max(span // SECOND_NS, MIN_BINS), MAX_BINS))
    return np.linspace(arrived_ns[0], int(arrived_ns[-1]) + 1, bins + 1).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Scan:
    """One way of being slow, in bins."""

    series: Series
    edges: IntArray
    thresholds: IntArray
    grid: Grid

    @classmethod
    def of(cls, series: Series, edges: IntArray) -> Self:
        """Bin the requests by some thresholds of "slow"."""
        thresholds = np.quantile(series.latency_ns, THRESHOLD_QUANTILES).astype(np.int64)
        return cls(series, edges, thresholds, Grid.of(series.arrived_ns, series.latency_ns, edges, thresholds))

    def spell(self, best: Best, threshold_ns: int, p_value: float) -> Spell:
        """A window with its borders moved to requests."""
        arrived, latency, edges = self.series.arrived_ns, self.series.latency_ns, self.edges
        reach = int(edges[1] - edges[0])
        borders = refine(arrived, latency > threshold_ns, int(edges[best.low]), int(edges[best.high]), reach)
        p95, p99 = np.quantile(latency, [0.95, 0.99]).astype(np.int64)
        return Spell(*borders, threshold_ns, p_value, _cost(arrived, np.clip(latency, p95, p99) - p95, borders))


def _cost(arrived_ns: IntArray, beyond_ns: IntArray, borders: tuple[int, int]) -> float:
    """What a stretch costs the tail."""
    low, high = np.searchsorted(arrived_ns, borders).tolist()
    inside, outside = beyond_ns[low:high], np.concatenate([beyond_ns[:low], beyond_ns[high:]])
    if not len(inside) or not len(outside):
        return 0.0
    return float((inside.mean() - outside.mean()) * len(inside) ** 0.5)


def _p_values(grids: list[Grid], observed: list[list[Best]], rng: np.random.Generator) -> list[float]:
    """How often shuffled stretches hold a window at least as unusual for any threshold, counting what was observed.

    Scores of different thresholds are compared by how rare each is among the shuffled ones of its own threshold, so
    that picking among thresholds is paid for once, and not more than it costs. Where chance soon does as well, it is not
    asked further.
    """
    scores = np.array([best.score for own in observed for best in own])
    shuffled = np.empty((0, len(scores)))
    block, bins = block_bins(grids, observed), len(grids[0].counts)
    p_values: list[float] = []
    while len(shuffled) < SHUFFLES:
        orders = shuffled_orders(bins, block, SHUFFLES_AT_ONCE, rng)
        shuffled = np.vstack([shuffled, np.hstack([grid.best_scores(orders) for grid in grids])])
        p_values = _joint(shuffled, scores)
        if min(p_values) * (1 + len(shuffled)) > ENOUGH:
            break
    return p_values


def _joint(shuffled: FloatArray, scores: FloatArray) -> list[float]:
    """For each threshold, how often the rarest of all scores of an order is as rare as its own."""
    ranked = np.sort(shuffled, axis=0)
    columns = range(len(scores))
    rarest = np.min([_rarity(ranked[:, column], shuffled[:, column]) for column in columns], axis=0)
    own = [_rarity(ranked[:, column], scores[column : column + 1])[0] for column in columns]
    return [(1 + int((rarest <= rarity).sum())) / (1 + len(shuffled)) for rarity in own]


def block_bins(grids: list[Grid], observed: list[list[Best]]) -> int:
    """How many bins are kept together: as long as slow requests keep company outside the suspected windows.

    Outside all of them where enough time is left, else outside the one of each threshold: a spell must not hide itself by the
    company that it keeps.
    """
    bins = len(grids[0].counts)
    suspected = np.zeros(bins, dtype=np.bool_)
    for best in (one for own in observed for one in own):
        suspected[best.low : best.high] = True
    is_enough_left = bool(suspected.mean() <= MAX_WINDOW_SHARE)
    longest = float(BLOCK_BINS)
    for grid, own in zip(grids, observed, strict=True):
        for slow, best in zip(grid.slow, own, strict=True):
            outside = ~suspected if is_enough_left else _outside(best, bins)
            longest = max(longest, COMPANY * correlation_length(grid.beyond(slow)[outside]))
    return int(min(ceil(longest), max(BLOCK_BINS, ceil(bins * MOST_BLOCK_SHARE))))


def _outside(best: Best, bins: int) -> NDArray[np.bool_]:
    """The bins outside one window."""
    outside = np.ones(bins, dtype=np.bool_)
    outside[best.low : best.high] = False
    return outside


def _rarity(ranked: FloatArray, scores: FloatArray) -> FloatArray:
    """The share of sorted scores that are at least as high as each given one."""
    return np.asarray((1 + len(ranked) - np.searchsorted(ranked, scores, side="left")) / (1 + len(ranked)))


def refine(arrived_ns: IntArray, slow: NDArray[np.bool_], start_ns: int, end_ns: int, reach_ns: int) -> tuple[int, int]:
    """Move both borders, within reach, to the requests that part slow from normal best: the elevated part and no more."""
    rate = _mid_rate(arrived_ns, slow, start_ns, end_ns)
    gain = np.concatenate([[0.0], np.cumsum(slow - rate)])
    low = _extreme(arrived_ns, -gain, start_ns - reach_ns, start_ns + reach_ns)
    high = _extreme(arrived_ns, gain, end_ns - reach_ns, end_ns + reach_ns)
    start = int(arrived_ns[low]) if low < len(arrived_ns) else start_ns
    end = int(arrived_ns[high - 1]) + 1 if high > low else end_ns
    return (start, end) if end > start else (start_ns, end_ns)


def _mid_rate(arrived_ns: IntArray, slow: NDArray[np.bool_], start_ns: int, end_ns: int) -> float:
    """Half way between the rate of slow requests inside and outside: below it a request speaks for normal times."""
    inside = (arrived_ns >= start_ns) & (arrived_ns < end_ns)
    outside = float(slow[~inside].mean()) if not inside.all() else 0.0
    return (float(slow[inside].mean()) + outside) / 2


def _extreme(arrived_ns: IntArray, gain: FloatArray, from_ns: int, to_ns: int) -> int:
    """The border in [from, to] with the highest gain."""
    low, high = np.searchsorted(arrived_ns, [from_ns, to_ns]).tolist()
    return int(low + np.argmax(gain[low : high + 1]))
