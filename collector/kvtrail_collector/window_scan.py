"""The search for the stretch of time in which slow requests are unusually many (LEDGER §5, step 8).

The statistic is that of a scan over windows of all lengths (Kulldorff, A spatial scan statistic, 1997), for several thresholds
of "slow". A window that was searched for is judged against the best window that the same search finds in the same data with its
stretches in another order: what is short or scattered survives that, a spell does not. Stretches are as long as slow requests
keep company outside the suspected window, so that a system that is restless by nature does not look ill.
"""

from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtrail_collector.bootstrap_block import correlation_length
from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.window_grid import MAX_WINDOW_SHARE, Best, Grid

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


def find_spells(arrived_ns: IntArray, latency_ns: IntArray, *, seed: int) -> list[Spell]:
    """The most unusual stretch for each of some thresholds, with how unusual it is; the costliest first.

    None where there are too few requests to say. p-values count that several thresholds were tried. Pure; under a third of
    a second whatever the number of requests; the same seed gives the same answer.
    """
    span = int(arrived_ns[-1] - arrived_ns[0]) if len(arrived_ns) else 0
    if len(arrived_ns) < MIN_REQUESTS or span == 0:
        return []
    bins = int(min(max(span // SECOND_NS, MIN_BINS), MAX_BINS))
    edges = np.linspace(arrived_ns[0], int(arrived_ns[-1]) + 1, bins + 1).astype(np.int64)
    thresholds = np.quantile(latency_ns, THRESHOLD_QUANTILES).astype(np.int64)
    grid = Grid.of(arrived_ns, latency_ns, edges, thresholds)
    best = grid.best()
    p_values = _p_values(grid, best, np.random.default_rng(seed))
    p95, p99 = np.quantile(latency_ns, [0.95, 0.99]).astype(np.int64)
    beyond = np.clip(latency_ns, p95, p99) - p95
    spells = []
    for one, threshold, p_value in zip(best, thresholds.tolist(), p_values, strict=True):
        borders = refine(arrived_ns, latency_ns > threshold, int(edges[one.low]), int(edges[one.high]), span // bins)
        spells.append(Spell(*borders, threshold, p_value, _cost(arrived_ns, beyond, borders)))
    return sorted(spells, key=lambda spell: -spell.cost)


def _cost(arrived_ns: IntArray, beyond_ns: IntArray, borders: tuple[int, int]) -> float:
    """What a stretch costs the tail."""
    low, high = np.searchsorted(arrived_ns, borders).tolist()
    inside, outside = beyond_ns[low:high], np.concatenate([beyond_ns[:low], beyond_ns[high:]])
    if not len(inside) or not len(outside):
        return 0.0
    return float((inside.mean() - outside.mean()) * len(inside) ** 0.5)


def _p_values(grid: Grid, observed: list[Best], rng: np.random.Generator) -> list[float]:
    """How often shuffled stretches hold a window at least as unusual for any threshold, counting what was observed.

    Scores of different thresholds are compared by how rare each is among the shuffled ones of its own threshold, so
    that picking among thresholds is paid for once, and not more than it costs. Where chance soon does as well, it is not
    asked further.
    """
    scores = np.array([best.score for best in observed])
    shuffled = np.empty((0, len(scores)))
    block = block_bins(grid, observed)
    while len(shuffled) < SHUFFLES:
        shuffled = np.vstack([shuffled, grid.shuffled_scores(block, SHUFFLES_AT_ONCE, rng)])
        if ((shuffled >= scores).sum(axis=0) >= ENOUGH).all():
            break
    ranked = np.sort(shuffled, axis=0)
    columns = range(len(scores))
    rarest = np.min([_rarity(ranked[:, column], shuffled[:, column]) for column in columns], axis=0)
    own = [_rarity(ranked[:, column], scores[column : column + 1])[0] for column in columns]
    return [(1 + int((rarest <= rarity).sum())) / (1 + len(shuffled)) for rarity in own]


def block_bins(grid: Grid, observed: list[Best]) -> int:
    """How many bins are kept together: as long as slow requests keep company outside the suspected windows.

    Outside all of them where enough time is left, else outside the one of each threshold: a spell must not hide itself by the
    company that it keeps.
    """
    suspected = np.zeros(len(grid.counts), dtype=np.bool_)
    for best in observed:
        suspected[best.low : best.high] = True
    is_enough_left = bool(suspected.mean() <= MAX_WINDOW_SHARE)
    longest = float(BLOCK_BINS)
    for slow, best in zip(grid.slow, observed, strict=True):
        outside = ~suspected if is_enough_left else _outside(best, len(grid.counts))
        rate = slow.sum() / max(int(grid.counts.sum()), 1)
        beyond = (slow - rate * grid.counts) / np.sqrt(np.maximum(grid.counts, 1))
        longest = max(longest, COMPANY * correlation_length(beyond[outside]))
    return int(min(ceil(longest), max(BLOCK_BINS, ceil(len(grid.counts) * MOST_BLOCK_SHARE))))


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
