"""Tail means of a population, exactly: what the slowest share of requests spent, and on what (LEDGER §5).

Fractions keep the promise that the differences of all components add up to the difference of the tail means, not
nearly but exactly; ties at the quantile are weighted so that the tail has mass exactly 1 - p.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.population import Population

QUANTILES = (Fraction(99, 100), Fraction(95, 100), Fraction(90, 100), Fraction(1, 2))
MIN_TAIL_REQUESTS = 30


@dataclass(frozen=True, slots=True)
class Tail:
    """The tail of a population beyond its quantile: mean latency, mean of each cause, in ns; `weights` of requests."""

    quantile_ns: int
    mean_ns: Fraction
    causes_ns: tuple[Fraction, ...]
    weights: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class Excess:
    """What the tail of a window has more than that of a reference, in ns. `within` is the exact sum of `causes`."""

    tail_ns: Fraction
    quantile_ns: int
    mix_ns: Fraction
    within_ns: Fraction
    causes_ns: tuple[Fraction, ...]
    window: Tail
    reference: Tail


def choose_quantile(window: int, reference: int) -> Fraction | None:
    """The highest quantile with 30 requests in the tail of both windows; None where even the median has not."""
    enough = (p for p in QUANTILES if (1 - p) * min(window, reference) >= MIN_TAIL_REQUESTS)
    return next(enough, None)


def excess_of(window: Population, reference: Population, p: Fraction) -> Excess:
    """Compare two tails; what comes from another mix of strata is kept apart from what happened within them."""
    plain = tail_of(reference, p, [Fraction(1)] * len(reference))
    reweighted = tail_of(reference, p, mix_weights(window.strata, reference.strata))
    own = tail_of(window, p, [Fraction(1)] * len(window))
    return Excess(
        tail_ns=own.mean_ns - plain.mean_ns,
        quantile_ns=own.quantile_ns - plain.quantile_ns,
        mix_ns=reweighted.mean_ns - plain.mean_ns,
        within_ns=own.mean_ns - reweighted.mean_ns,
        causes_ns=tuple(here - there for here, there in zip(own.causes_ns, reweighted.causes_ns, strict=True)),
        window=own,
        reference=reweighted,
    )


def mix_weights(window: IntArray, reference: IntArray) -> list[Fraction]:
    """Weights that give the reference the strata of the window; a stratum that the window lacks weighs nothing."""
    strata, place = np.unique(reference, return_inverse=True)
    share = [Fraction(int((window == stratum).sum()), max(len(window), 1)) for stratum in strata]
    counts = np.bincount(place, minlength=len(strata)).tolist()
    each = [part * len(reference) / count for part, count in zip(share, counts, strict=True)]
    return [each[index] for index in place.tolist()]


def tail_of(population: Population, p: Fraction, weights: Sequence[Fraction]) -> Tail:
    """The slowest 1 - p of the mass of a population that is not empty."""
    mass = (1 - p) * sum(weights)
    tail, quantile_ns = _tail_weights(population.latency_ns, weights, mass)
    causes = _weighted_sums(population.amounts_ns, tail)
    means = tuple(total / mass for total in causes)
    return Tail(quantile_ns, sum(means, Fraction(0)), means, tuple(tail))


def _tail_weights(latency_ns: IntArray, weights: Sequence[Fraction], mass: Fraction) -> tuple[list[Fraction], int]:
    """The weight of each request in the tail, and the latency at which the tail begins."""
    order = np.argsort(-latency_ns, kind="stable").tolist()
    latency = latency_ns.tolist()
    tail, left, place = [Fraction(0)] * len(order), mass, 0
    while left > 0 and place < len(order):
        ties = [order[place]]
        while place + len(ties) < len(order) and latency[order[place + len(ties)]] == latency[ties[0]]:
            ties.append(order[place + len(ties)])
        total = sum((weights[index] for index in ties), Fraction(0))
        share = min(Fraction(1), left / total) if total else Fraction(0)
        for index in ties:
            tail[index] = weights[index] * share
        left -= total * share
        place += len(ties)
    return tail, latency[order[max(place - 1, 0)]]


def _weighted_sums(amounts_ns: IntArray, weights: Sequence[Fraction]) -> list[Fraction]:
    """The weighted sum of each column, adding integers first: few weights differ."""
    totals = [Fraction(0)] * amounts_ns.shape[1]
    by_weight: dict[Fraction, list[int]] = {}
    for index, weight in enumerate(weights):
        if weight:
            by_weight.setdefault(weight, []).append(index)
    for weight, rows in by_weight.items():
        sums = amounts_ns[rows].sum(axis=0).tolist()
        totals = [total + weight * int(column) for total, column in zip(totals, sums, strict=True)]
    return totals
