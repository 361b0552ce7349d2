"""The search for the stretch of time in which slow requests are unusually many (LEDGER §5, step 8).

A window that was searched for is judged against the best window that the same search finds in the same data with its
stretches in another order: what is short or scattered survives that, a spell does not.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvtrail_collector.facts_rows import IntArray

FloatArray = NDArray[np.float64]

THRESHOLD_QUANTILES: Final = (0.75, 0.9, 0.95, 0.98)
MAX_BINS: Final = 120
MIN_BINS: Final = 20
BLOCK_BINS: Final = 3
MIN_WINDOW_BINS: Final = 4
MIN_REQUESTS: Final = 100
MAX_WINDOW_SHARE: Final = 0.6
PERMUTATIONS: Final = 499
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

    None where there are too few requests to say. p-values count that several thresholds were tried. Pure; about half a
    second whatever the number of requests; the same seed gives the same answer.
    """
    span = int(arrived_ns[-1] - arrived_ns[0]) if len(arrived_ns) else 0
    if len(arrived_ns) < MIN_REQUESTS or span == 0:
        return []
    bins = int(min(max(span // SECOND_NS, MIN_BINS), MAX_BINS))
    edges = np.linspace(arrived_ns[0], int(arrived_ns[-1]) + 1, bins + 1).astype(np.int64)
    thresholds = np.quantile(latency_ns, THRESHOLD_QUANTILES).astype(np.int64)
    grid = _Grid.of(arrived_ns, latency_ns, edges, thresholds)
    best = grid.best()
    p_values = _p_values(grid, best, np.random.default_rng(seed))
    p95, p99 = np.quantile(latency_ns, [0.95, 0.99]).astype(np.int64)
    beyond = np.clip(latency_ns, p95, p99) - p95
    spells = []
    for (_, low, high), threshold, p_value in zip(best, thresholds.tolist(), p_values, strict=True):
        borders = refine(arrived_ns, latency_ns > threshold, int(edges[low]), int(edges[high]), span // bins)
        spells.append(Spell(*borders, threshold, p_value, _cost(arrived_ns, beyond, borders)))
    return sorted(spells, key=lambda spell: -spell.cost)


def _cost(arrived_ns: IntArray, beyond_ns: IntArray, borders: tuple[int, int]) -> float:
    """What a stretch costs the tail."""
    low, high = np.searchsorted(arrived_ns, borders).tolist()
    inside, outside = beyond_ns[low:high], np.concatenate([beyond_ns[:low], beyond_ns[high:]])
    if not len(inside) or not len(outside):
        return 0.0
    return float((inside.mean() - outside.mean()) * len(inside) ** 0.5)


def _p_values(grid: "_Grid", observed: "list[Best]", rng: np.random.Generator) -> list[float]:
    """How often shuffled stretches hold a window at least as unusual for any threshold, counting what was observed.

    Scores of different thresholds are compared by how rare each is among the shuffled ones of its own threshold, so
    that picking among thresholds is paid for once, and not more than it costs.
    """
    scores = np.array([best.score for best in observed])
    shuffled = np.array([[best.score for best in grid.shuffled(rng).best()] for _ in range(PERMUTATIONS)])
    ranked = np.sort(shuffled, axis=0)
    columns = range(len(scores))
    rarest = np.min([_rarity(ranked[:, column], shuffled[:, column]) for column in columns], axis=0)
    own = [_rarity(ranked[:, column], scores[column : column + 1])[0] for column in columns]
    return [(1 + int((rarest <= rarity).sum())) / (1 + PERMUTATIONS) for rarity in own]


def _rarity(ranked: FloatArray, scores: FloatArray) -> FloatArray:
    """The share of sorted scores that are at least as high as each given one."""
    return np.asarray((1 + len(ranked) - np.searchsorted(ranked, scores, side="left")) / (1 + len(ranked)))


class Best(NamedTuple):
    """The best window for one threshold: its score, its first bin, and the bin after its last."""

    score: float
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class _Grid:
    """Requests, and slow ones for each threshold, in bins of equal time."""

    counts: IntArray
    slow: IntArray
    lows: IntArray
    highs: IntArray

    @classmethod
    def of(cls, arrived_ns: IntArray, latency_ns: IntArray, edges: IntArray, thresholds: IntArray) -> "_Grid":
        """Bin the requests, and list the windows to search: not a hiccup, not most of the time."""
        bins = len(edges) - 1
        place = np.clip(np.searchsorted(edges, arrived_ns, side="right") - 1, 0, bins - 1)
        slow = [np.bincount(place[latency_ns > threshold], minlength=bins) for threshold in thresholds]
        low, high = np.triu_indices(bins + 1, k=MIN_WINDOW_BINS)
        allowed = high - low <= bins * MAX_WINDOW_SHARE
        return cls(np.bincount(place, minlength=bins), np.stack(slow), low[allowed], high[allowed])

    def shuffled(self, rng: np.random.Generator) -> "_Grid":
        """The same stretches in another order, cut at a random place."""
        bins = len(self.counts)
        order = np.roll(np.arange(bins), int(rng.integers(bins)))
        blocks = np.array_split(order, max(bins // BLOCK_BINS, 2))
        mixed = np.concatenate([blocks[index] for index in rng.permutation(len(blocks))])
        return _Grid(self.counts[mixed], self.slow[:, mixed], self.lows, self.highs)

    def best(self) -> list[Best]:
        """The best window for each threshold."""
        total = np.concatenate([[0], np.cumsum(self.counts)])
        inside = (total[self.highs] - total[self.lows]).astype(np.float64)
        return [self._best(self._scores(inside, float(total[-1]), slow)) for slow in self.slow]

    def _best(self, scores: FloatArray) -> Best:
        """The window with the highest score."""
        place = int(np.argmax(scores))
        return Best(float(scores[place]), int(self.lows[place]), int(self.highs[place]))

    def _scores(self, inside: FloatArray, total: float, slow: IntArray) -> FloatArray:
        """For each window, how much likelier its own rate of slow requests makes what was seen than one rate for all."""
        until = np.concatenate([[0], np.cumsum(slow)])
        own, all_slow = (until[self.highs] - until[self.lows]).astype(np.float64), float(until[-1])
        gain = _log_likelihood(own, inside) + _log_likelihood(all_slow - own, total - inside)
        above = own * (total - inside) > (all_slow - own) * inside
        base = _log_likelihood(np.array([all_slow]), np.array([total]))
        return np.where(above, gain - base, 0.0)


def _log_likelihood(hits: FloatArray, trials: FloatArray) -> FloatArray:
    """Of so many hits in so many trials at their own rate."""
    return _xlogx(hits) + _xlogx(trials - hits) - _xlogx(trials)


def _xlogx(value: FloatArray) -> FloatArray:
    """X log x, which is 0 at 0 and at 1."""
    return value * np.log(np.maximum(value, 1.0))


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
