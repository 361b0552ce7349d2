"""Tail means of many resamples at once: only the requests that can be in a tail are looked at."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtrail_collector.facts_rows import BoolArray, IntArray

FloatArray = NDArray[np.float64]
SingleArray = NDArray[np.float32]

FIRST_ROWS_IN_TAILS: Final = 2
MORE_ROWS: Final = 4
_ROUNDING: Final = 1e-6


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

    def amounts_of(self, rows: int) -> SingleArray:
        """What the slowest rows spent on each cause; single precision is a millionth of a tail, far below chance."""
        return self.amounts_ns[self.rows[:rows]].astype(np.float32)

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


def tail_means(ranked: Ranked, times: FloatArray, p: Fraction, weights: FloatArray | None = None) -> FloatArray:
    """The mean of each cause in the tail of each resample, in ns.

    `times[b, c]` is how often resample b has cell c; `weights[b, s]` is what a request of stratum s weighs in it, absent: 1.
    """
    counts = times @ ranked.counts
    mass = float(1 - p) * (counts if weights is None else counts * weights).sum(axis=1)
    rows = min(FIRST_ROWS_IN_TAILS * max(int(float(1 - p) * len(ranked.latency_ns)), 1), len(ranked.latency_ns))
    found = np.zeros((len(mass), ranked.amounts_ns.shape[1]))
    left = np.arange(len(mass))
    while len(left):
        rows = _with_ties(ranked.latency_ns, rows)
        every = len(left) == len(mass)  # the usual case, in which nothing needs to be copied
        own = weights if weights is None or every else weights[left]
        means, reached = _of_first(ranked, rows, times if every else times[left], mass[left], own)
        done = reached | (rows == len(ranked.latency_ns))
        found[left[done]] = means[done]
        left, rows = left[~done], min(rows * MORE_ROWS, len(ranked.latency_ns))
    return found


def _with_ties(latency_ns: IntArray, rows: int) -> int:
    """So many rows, and those that tie with the last of them."""
    return int(np.searchsorted(-latency_ns, -latency_ns[rows - 1], side="right"))


def _of_first(
    ranked: Ranked, rows: int, times: FloatArray, mass: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, BoolArray]:
    """The tail means of some resamples, if the slowest rows hold their tails, and whether they do."""
    present = np.take(times.astype(np.float32), ranked.cell[:rows], axis=1)
    if weights is not None:
        present *= np.take(weights.astype(np.float32), ranked.stratum[:rows], axis=1)
    in_tail, reached = _in_tail(present, ranked.latency_ns[:rows], mass)
    sums = (in_tail @ ranked.amounts_of(rows)).astype(np.float64)
    return sums / np.maximum(in_tail.sum(axis=1, dtype=np.float64), np.finfo(np.float32).tiny)[:, np.newaxis], reached


def _in_tail(present: SingleArray, latency_ns: IntArray, mass: FloatArray) -> tuple[SingleArray, BoolArray]:
    """How much of each row is in the tail; rows that tie share what is left of it. And whether the tail is complete."""
    starts = np.flatnonzero(np.append([True], np.diff(latency_ns) != 0))
    has_ties = len(starts) < len(latency_ns)
    tied = np.add.reduceat(present, starts, axis=1) if has_ties else present
    until = np.cumsum(tied, axis=1, dtype=np.float64)
    reached = until[:, -1] >= mass * (1 - _ROUNDING)
    taken = (mass[:, np.newaxis] - until).astype(np.float32)
    taken += tied
    np.clip(taken, 0.0, tied, out=taken)
    if not has_ties:
        return taken, reached
    share = np.divide(taken, tied, out=np.zeros_like(tied), where=tied > 0)
    return present * np.repeat(share, np.diff(np.append(starts, len(latency_ns))), axis=1), reached
