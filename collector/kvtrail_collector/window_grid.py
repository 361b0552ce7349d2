"""Requests in bins of equal time, and the score of every window over them; many orders of the bins at once."""

from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvtrail_collector.facts_rows import BoolArray, IntArray

FloatArray = NDArray[np.float64]

MIN_WINDOW_BINS: Final = 4
MAX_WINDOW_SHARE: Final = 0.6
LENGTH_RATIO: Final = 1.2
STEPS_A_WINDOW: Final = 8


class Best(NamedTuple):
    """The best window for one threshold: its score, its first bin, and the bin after its last."""

    score: float
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Grid:
    """Requests, and slow ones for each threshold, in bins of equal time; and the windows to be searched."""

    counts: IntArray
    slow: IntArray
    lows: IntArray
    highs: IntArray
    logs: FloatArray

    @classmethod
    def of(cls, arrived_ns: IntArray, latency_ns: IntArray, edges: IntArray, thresholds: IntArray) -> "Grid":
        """Bin the requests, and list the windows to search: not a hiccup, not most of the time."""
        bins = len(edges) - 1
        place = np.clip(np.searchsorted(edges, arrived_ns, side="right") - 1, 0, bins - 1)
        slow = [np.bincount(place[latency_ns > threshold], minlength=bins) for threshold in thresholds]
        lows, highs = _windows(bins)
        number = np.arange(len(arrived_ns) + 1, dtype=np.float64)
        logs = number * np.log(np.maximum(number, 1.0))
        return cls(np.bincount(place, minlength=bins), np.stack(slow), lows, highs, logs)

    def best(self) -> list[Best]:
        """The best window for each threshold; its borders are the best near those that were searched."""
        scores = self._scores(np.arange(len(self.counts))[np.newaxis])[:, 0]
        places = scores.argmax(axis=1).tolist()
        return [
            self._near(float(own[place]), place, number) for number, (own, place) in enumerate(zip(scores, places, strict=True))
        ]

    def _near(self, score: float, place: int, threshold: int) -> Best:
        """The best window whose borders are within a step or two of a searched one's. The score stays that of the search."""
        low, high = int(self.lows[place]), int(self.highs[place])
        reach, bins = max((high - low) // 4, 1), len(self.counts)
        lows = np.arange(max(low - reach, 0), low + reach + 1)
        highs = np.arange(high - reach, min(high + reach, bins) + 1)
        pairs = np.array([(one, other) for one in lows for other in highs if other - one >= MIN_WINDOW_BINS])
        if not len(pairs):
            return Best(score, low, high)
        near = Grid(self.counts, self.slow[[threshold]], pairs[:, 0], pairs[:, 1], self.logs)
        best = int(near._scores(np.arange(bins)[np.newaxis])[0, 0].argmax())
        return Best(score, int(pairs[best, 0]), int(pairs[best, 1]))

    def best_scores(self, orders: IntArray) -> FloatArray:
        """The best score of each threshold, one row an order of the bins."""
        return np.asarray(self._scores(orders).max(axis=2).T)

    def best_pair(self) -> list[tuple[Best, Best]]:
        """For each threshold the best window, and the best one that does not touch it; both have what they score together."""
        scores = self._scores(np.arange(len(self.counts))[np.newaxis])[:, 0]
        first = scores.argmax(axis=1)
        rest = np.where(self._touching(first), 0.0, scores)
        second = rest.argmax(axis=1)
        together = np.take_along_axis(scores, first[:, np.newaxis], 1)[:, 0] + rest.max(axis=1)
        pairs = zip(together.tolist(), first.tolist(), second.tolist(), strict=True)
        return [
            (self._near(score, one, number), self._near(score, other, number))
            for number, (score, one, other) in enumerate(pairs)
        ]

    def pair_scores(self, orders: IntArray) -> FloatArray:
        """What the best two windows of each threshold that do not touch score together, one row an order of the bins."""
        scores = self._scores(orders)
        first = scores.argmax(axis=2)
        best = np.take_along_axis(scores, first[..., np.newaxis], 2)[..., 0]
        np.copyto(scores, 0.0, where=self._touching(first))
        return np.asarray((best + scores.max(axis=2)).T)

    def _touching(self, places: IntArray) -> BoolArray:
        """Which windows overlap the window at each place."""
        lows, highs = self.lows[places][..., np.newaxis], self.highs[places][..., np.newaxis]
        return np.asarray((self.lows < highs) & (self.highs > lows))

    def beyond(self, slow: IntArray) -> FloatArray:
        """How many more slow requests each bin has than its requests would have by the rate of all, in standard deviations."""
        rate = slow.sum() / max(int(self.counts.sum()), 1)
        return np.asarray((slow - rate * self.counts) / np.sqrt(np.maximum(self.counts, 1)))

    def _scores(self, orders: IntArray) -> FloatArray:
        """For each threshold, order of bins and window: how much likelier an own rate of slow requests makes what was seen."""
        total = _until(self.counts[orders])
        everybody = int(self.counts.sum())
        inside = total[:, self.highs] - total[:, self.lows]
        trials = self.logs[inside] + self.logs[everybody - inside]
        return np.stack([self._gain(slow, orders, inside, trials) for slow in self.slow])

    def _gain(self, slow: IntArray, orders: IntArray, inside: IntArray, trials: FloatArray) -> FloatArray:
        """The scores for one threshold; windows with fewer slow requests than outside have none."""
        until = _until(slow[orders])
        own, hits, everybody = until[:, self.highs] - until[:, self.lows], int(slow.sum()), int(self.counts.sum())
        rest, outside = hits - own, everybody - inside
        gain = self.logs[own] + self.logs[inside - own] + self.logs[rest] + self.logs[outside - rest] - trials
        base = self.logs[hits] + self.logs[everybody - hits] - self.logs[everybody]
        return np.where(own * outside > rest * inside, gain - base, 0.0)


def shuffled_orders(bins: int, block: int, orders: int, rng: np.random.Generator) -> IntArray:
    """Orders of bins in which stretches of so many stay whole, cut at random places; one row an order."""
    stretches = np.arange(bins) // ceil(bins / max(bins // block, 2))
    rank = rng.random((orders, int(stretches[-1]) + 1))
    shifted = (np.arange(bins) + rng.integers(0, bins, size=(orders, 1))) % bins
    return np.take_along_axis(shifted, np.argsort(rank[:, stretches], axis=1, kind="stable"), axis=1)


def _until(values: IntArray) -> IntArray:
    """Sums of all before each place, along rows."""
    return np.hstack([np.zeros((len(values), 1), dtype=np.int64), np.cumsum(values, axis=1)])


def _windows(bins: int) -> tuple[IntArray, IntArray]:
    """Windows of lengths in a geometric row, each placed at steps of an eighth of its length."""
    lows, lengths, length = [], [], float(MIN_WINDOW_BINS)
    while round(length) <= max(bins * MAX_WINDOW_SHARE, MIN_WINDOW_BINS):
        own = np.arange(0, bins - round(length) + 1, max(round(length) // STEPS_A_WINDOW, 1))
        lows.append(own)
        lengths.append(np.full(len(own), round(length)))
        length = max(length * LENGTH_RATIO, length + 1)
    low = np.concatenate(lows)
    return low, low + np.concatenate(lengths)
