"""Tail means of many resamples at once: only the requests that can be in a tail are looked at."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtrail_collector.facts_rows import BoolArray, IntArray

FloatArray = NDArray[np.float64]

FIRST_ROWS_IN_TAILS: Final = 3
MORE_ROWS: Final = 4


@dataclass(frozen=True, slots=True)
class Ranked:
    """A population from slow to fast, ready to be drawn by cells of time.

    `counts[c, s]` is how many requests of stratum s arrived in cell c; the last stratum is that of newcomers. `rows` are the
    places of the requests in `amounts_ns`.
    """

    counts: FloatArray
    latency_ns: IntArray
    cell: IntArray
    stratum: IntArray
    rows: IntArray
    amounts_ns: IntArray

    @classmethod
    def of(
        cls,
        latency_ns: IntArray,
        amounts_ns: IntArray,
        rows: IntArray,
        *,
        cell: IntArray,
        stratum: IntArray,
        shape: tuple[int, int],
    ) -> "Ranked":
        """Put some requests in order; those that tie may stand in any. `shape` is how many cells and strata there are."""
        order = np.argsort(-latency_ns, kind="stable")
        counts = np.bincount(cell * shape[1] + stratum, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
        return cls(counts, latency_ns[order], cell[order], stratum[order], rows[order], amounts_ns)

    def amounts_of(self, rows: int) -> FloatArray:
        """What the slowest rows spent on each cause."""
        return self.amounts_ns[self.rows[:rows]].astype(np.float64)

    def beside(self, other: "Ranked") -> "Ranked":
        """Both populations, one after the other in time, with their latencies alone."""
        latency = np.concatenate([self.latency_ns, other.latency_ns])
        return Ranked.of(
            latency,
            latency[:, np.newaxis],
            np.arange(len(latency)),
            cell=np.concatenate([self.cell, other.cell + len(self.counts)]),
            stratum=np.concatenate([self.stratum, other.stratum]),
            shape=(len(self.counts) + len(other.counts), self.counts.shape[1]),
        )


def tail_means(ranked: Ranked, times: FloatArray, p: Fraction, weights: FloatArray) -> FloatArray:
    """The mean of each cause in the tail of each resample, in ns.

    `times[b, c]` is how often resample b has cell c; `weights[b, s]` is what a request of stratum s weighs in it.
    """
    mass = float(1 - p) * ((times @ ranked.counts) * weights).sum(axis=1)
    rows = min(FIRST_ROWS_IN_TAILS * max(int(float(1 - p) * len(ranked.latency_ns)), 1), len(ranked.latency_ns))
    found = np.zeros((len(mass), ranked.amounts_ns.shape[1]))
    left = np.arange(len(mass))
    while len(left):
        rows = _with_ties(ranked.latency_ns, rows)
        means, reached = _of_first(ranked, rows, times[left], mass[left], weights[left])
        done = reached | (rows == len(ranked.latency_ns))
        found[left[done]] = means[done]
        left, rows = left[~done], min(rows * MORE_ROWS, len(ranked.latency_ns))
    return found


def _with_ties(latency_ns: IntArray, rows: int) -> int:
    """So many rows, and those that tie with the last of them."""
    return int(np.searchsorted(-latency_ns, -latency_ns[rows - 1], side="right"))


def _of_first(
    ranked: Ranked, rows: int, times: FloatArray, mass: FloatArray, weights: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """The tail means of some resamples, if the slowest rows hold their tails, and whether they do."""
    present = times[:, ranked.cell[:rows]] * weights[:, ranked.stratum[:rows]]
    starts = np.flatnonzero(np.append([True], np.diff(ranked.latency_ns[:rows]) != 0))
    tied = np.add.reduceat(present, starts, axis=1)
    until = np.cumsum(tied, axis=1)
    taken = np.clip(mass[:, np.newaxis] - (until - tied), 0.0, tied)
    share = np.divide(taken, tied, out=np.zeros_like(tied), where=tied > 0)
    in_tail = present * np.repeat(share, np.diff(np.append(starts, rows)), axis=1)
    means = in_tail @ ranked.amounts_of(rows) / np.maximum(mass, np.finfo(np.float64).tiny)[:, np.newaxis]
    return np.asarray(means), np.asarray(until[:, -1] >= mass * (1 - 1e-9))
