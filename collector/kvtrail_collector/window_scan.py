"""The search for the stretch of time in which slow requests are unusually many (LEDGER §5, step 8).

The statistic is that of a scan over windows of all lengths (Kulldorff, A spatial scan statistic, 1997), for several thresholds
of "slow". A window that was searched for is judged against the best window that the same search finds in the same data with its
stretches in another order: what is short or scattered survives that, a spell does not. Stretches are as long as slow requests
keep company outside the suspected window, so that a system that is restless by nature does not look ill.
"""

from collections.abc import Callable, Sequence
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
Windows = tuple[Best, ...]
"""One window, or two that are judged together."""
Score = Callable[[Grid, IntArray], FloatArray]
"""What windows score in given orders of the bins: one row an order, one column a threshold."""

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
    scans = _scans(series)
    found: list[list[Windows]] = [[(best,) for best in scan.grid.best()] for scan in scans]
    return sorted((own[0] for own in _judged(scans, found, Grid.best_scores, seed)), key=lambda spell: -spell.cost)


def find_pairs(series: Sequence[Series], *, seed: int) -> list[tuple[Spell, ...]]:
    """As `find_spells`, but each time the most unusual stretch and the one beside it, judged together; costliest first.

    Of two spells each makes the other look like chance, as what is shuffled holds both: two windows in shuffled time hold less
    than two spells, though one window may hold as much as one of them. Both have the p-value of both together.
    """
    scans = _scans(series)
    found: list[list[Windows]] = [list(scan.grid.best_pair()) for scan in scans]
    return sorted(_judged(scans, found, Grid.pair_scores, seed), key=lambda pair: -max(spell.cost for spell in pair))


def _scans(series: Sequence[Series]) -> "list[_Scan]":
    """The series that have requests enough, in bins; none where the first one has not."""
    edges = _edges(series[0].arrived_ns) if series else None
    return [] if edges is None else [_Scan.of(one, edges) for one in series if len(one.arrived_ns) >= MIN_REQUESTS]


def _judged(scans: "Sequence[_Scan]", found: list[list[Windows]], score: Score, seed: int) -> list[tuple[Spell, ...]]:
    """What was found for each threshold of each series, with how often shuffled time holds as much."""
    if not scans:
        return []
    p_values = iter(_p_values([scan.grid for scan in scans], found, score, np.random.default_rng(seed)))
    return [
        scan.spells(windows, threshold, next(p_values))
        for scan, own in zip(scans, found, strict=True)
        for windows, threshold in zip(own, scan.thresholds.tolist(), strict=True)
    ]


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
        thresholds = np.unique(np.quantile(series.latency_ns, THRESHOLD_QUANTILES).astype(np.int64))
        return cls(series, edges, thresholds, Grid.of(series.arrived_ns, series.latency_ns, edges, thresholds))

    def spells(self, windows: Windows, threshold_ns: int, p_value: float) -> tuple[Spell, ...]:
        """Windows as spells, in the order in which they were found."""
        return tuple(self._spell(best, threshold_ns, p_value) for best in windows)

    def _spell(self, best: Best, threshold_ns: int, p_value: float) -> Spell:
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


def _p_values(grids: list[Grid], observed: Sequence[Sequence[Windows]], score: Score, rng: np.random.Generator) -> list[float]:
    """How often shuffled stretches hold windows at least as unusual for any threshold, counting what was observed.

    Scores of different thresholds are compared by how rare each is among the shuffled ones of its own threshold, so
    that picking among thresholds is paid for once, and not more than it costs. Where chance soon does as well, it is not
    asked further.
    """
    scores = np.array([windows[0].score for own in observed for windows in own])
    shuffled = np.empty((0, len(scores)))
    block, bins = block_bins(grids, observed), len(grids[0].counts)
    p_values: list[float] = []
    while len(shuffled) < SHUFFLES:
        orders = shuffled_orders(bins, block, SHUFFLES_AT_ONCE, rng)
        shuffled = np.vstack([shuffled, np.hstack([score(grid, orders) for grid in grids])])
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


def block_bins(grids: Sequence[Grid], observed: Sequence[Sequence[Windows]]) -> int:
    """How many bins are kept together: as long as slow requests keep company outside the suspected windows.

    Outside all of them where enough time is left, else outside those of each threshold: a spell must not hide itself by the
    company that it keeps.
    """
    bins = len(grids[0].counts)
    outside_all = _outside([best for own in observed for windows in own for best in windows], bins)
    is_enough_left = bool(outside_all.mean() >= 1 - MAX_WINDOW_SHARE)
    longest = float(BLOCK_BINS)
    for grid, own in zip(grids, observed, strict=True):
        for slow, windows in zip(grid.slow, own, strict=True):
            outside = outside_all if is_enough_left else _outside(windows, bins)
            longest = max(longest, COMPANY * correlation_length(grid.beyond(slow)[outside]))
    return int(min(ceil(longest), max(BLOCK_BINS, ceil(bins * MOST_BLOCK_SHARE))))


def _outside(windows: Sequence[Best], bins: int) -> NDArray[np.bool_]:
    """The bins outside some windows."""
    outside = np.ones(bins, dtype=np.bool_)
    for best in windows:
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
