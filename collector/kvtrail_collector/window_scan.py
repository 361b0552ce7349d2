"""The search for the stretch of time in which slow requests are unusually many (LEDGER §5, step 8).

A window that was searched for is judged against the best window that the same search finds in the same data with its
stretches in another order: what is short or scattered survives that, a spell does not.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtrail_collector.facts_rows import IntArray

FloatArray = NDArray[np.float64]

THRESHOLD_QUANTILES: Final = (0.5, 0.75, 0.9, 0.95)
MAX_BINS: Final = 120
MIN_BINS: Final = 20
BLOCK_BINS: Final = 3
MIN_WINDOW_BINS: Final = 4
MAX_WINDOW_SHARE: Final = 0.6
PERMUTATIONS: Final = 299
SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Spell:
    """The best window of a search: its borders, the latency above which requests count as slow, its p-value."""

    start_ns: int
    end_ns: int
    threshold_ns: int
    p_value: float


def find_spell(arrived_ns: IntArray, latency_ns: IntArray, *, seed: int) -> Spell | None:
    """The most unusual stretch, with how unusual it is; None where there are too few requests to say.

    Pure; about 0.3 s whatever the number of requests; the same seed gives the same answer.
    """
    span = int(arrived_ns[-1] - arrived_ns[0]) if len(arrived_ns) else 0
    bins = min(max(span // SECOND_NS, MIN_BINS), MAX_BINS)
    if len(arrived_ns) < 5 * MIN_BINS or span == 0:
        return None
    edges = np.linspace(arrived_ns[0], int(arrived_ns[-1]) + 1, bins + 1).astype(np.int64)
    thresholds = np.quantile(latency_ns, THRESHOLD_QUANTILES).astype(np.int64)
    grid = _Grid.of(arrived_ns, latency_ns, edges, thresholds)
    scores, low, high, level = grid.best()
    p_value = _p_value(grid, scores, np.random.default_rng(seed))
    start, end = refine(arrived_ns, latency_ns > thresholds[level], int(edges[low]), int(edges[high]), int(span // bins))
    return Spell(start, end, int(thresholds[level]), p_value)


def _p_value(grid: "_Grid", observed: float, rng: np.random.Generator) -> float:
    """How often shuffled stretches hold a window at least as unusual, counting what was observed."""
    better = sum(grid.shuffled(rng).best()[0] >= observed for _ in range(PERMUTATIONS))
    return (1 + better) / (1 + PERMUTATIONS)


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

    def best(self) -> tuple[float, int, int, int]:
        """The score of the best window, its first bin, the one after its last, and the threshold that found it."""
        total = np.concatenate([[0], np.cumsum(self.counts)])
        inside = (total[self.highs] - total[self.lows]).astype(np.float64)
        scores = np.stack([self._scores(inside, float(total[-1]), slow) for slow in self.slow])
        level, place = np.unravel_index(int(np.argmax(scores)), scores.shape)
        return float(scores[level, place]), int(self.lows[place]), int(self.highs[place]), int(level)

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
