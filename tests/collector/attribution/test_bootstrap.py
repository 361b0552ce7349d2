"""Resamples: fair, repeatable, and of whole stretches."""

from fractions import Fraction

import numpy as np
from kvtrail_collector.attribution_strata import strata_of
from kvtrail_collector.attribution_tail import excess_of
from kvtrail_collector.bootstrap import Resamples, resample
from kvtrail_collector.bootstrap_block import block_ns
from kvtrail_collector.population import Population

from tests.collector.attribution.populations import MS, population

P90 = Fraction(90, 100)


def resampled(window: Population, reference: Population, p: Fraction, *, seed: int) -> Resamples:
    """Resamples of two populations."""
    return resample(window, reference, p, strata_of(window, reference), seed=seed, resamples=300)


def difference(window: Population, reference: Population) -> float:
    """How much slower the tail is."""
    return float(excess_of(window, reference, P90, strata_of(window, reference)).within_ns)


def noisy(requests: int, seed: int, extra_ms: float = 0.0) -> Population:
    """Requests with random reads, and more of them by a constant."""
    rng = np.random.default_rng(seed)
    reads = rng.exponential(20 * MS, requests) + extra_ms * MS
    prefill = rng.uniform(5 * MS, 10 * MS, requests)
    return population([[0, int(read), int(ns)] for read, ns in zip(reads, prefill, strict=True)])


def test_repeatable() -> None:
    """The same seed gives the same resamples, another seed others."""
    window, reference = noisy(300, 1, 30), noisy(600, 2)
    first, again, other = (resampled(window, reference, P90, seed=seed) for seed in (5, 5, 6))

    assert np.array_equal(first.causes_ns, again.causes_ns)
    assert not np.array_equal(first.causes_ns, other.causes_ns)


def test_difference_is_found() -> None:
    """What differs leads in all resamples and its interval holds the difference; what does not includes zero."""
    found = resampled(noisy(900, 2, 30), noisy(900, 2), Fraction(1, 2), seed=3)
    low, high = found.interval_ns([1])

    assert low < 30 * MS < high
    assert found.lead_share([1]) == 1.0
    assert found.interval_ns([2])[0] < 0 < found.interval_ns([2])[1]


def test_no_difference() -> None:
    """Of pairs of windows of the same kind, about nineteen of twenty give an interval around zero."""
    held = 0
    for seed in range(30):
        pair = noisy(900, 2 * seed), noisy(900, 2 * seed + 1)
        found = resampled(*pair, P90, seed=3)
        low, high = found.interval_ns([0, 1, 2])
        held += low < 0 < high

    assert 26 <= held <= 30


def test_chance() -> None:
    """Windows of the same kind differ by chance as often as it says; what a fault adds is no chance."""
    pairs = [(noisy(900, 2 * seed), noisy(900, 2 * seed + 1)) for seed in range(30)]
    same = [resampled(*pair, P90, seed=1).chance(difference(*pair)) for pair in pairs]
    slower = noisy(900, 2, 30), noisy(900, 3)

    assert 8 <= sum(p <= 0.5 for p in same) <= 22
    assert sum(p <= 0.01 for p in same) <= 2
    assert resampled(*slower, P90, seed=1).chance(difference(*slower)) <= 0.01


def test_ties_count_alike() -> None:
    """Where all tie at the quantile, those who came last are in the tail no more than those who came first."""
    half = [[0, 60 * MS, 40 * MS]] * 200 + [[0, 40 * MS, 60 * MS]] * 200
    found = resampled(population(half), population([[0, 50 * MS, 50 * MS]] * 400), P90, seed=2)
    low, high = found.interval_ns([1])

    assert low < 0 < high
    assert abs(float(found.causes_ns[:, 1].mean())) < 2 * MS


def test_blocks_hold_five_medians() -> None:
    """Neighbours are drawn together for five median latencies, but at least five blocks make a window."""
    assert 5 * 20 * MS <= block_ns(population([[20 * MS]] * 1_000), P90) < 20 * 20 * MS
    assert block_ns(population([[900 * MS]] * 100), P90) == (99 * 30 * MS + 1) // 5


def test_blocks_hold_company() -> None:
    """Where slow requests keep company for a second, at least a second is drawn together."""
    rng = np.random.default_rng(1)
    slow = np.repeat(rng.random(200) < 0.1, 33)
    company = population([[int(ns)] for ns in rng.exponential(5 * MS, len(slow)) + slow * 90 * MS])

    assert block_ns(company, P90) > 1_000 * MS
    assert block_ns(population([[int(ns)] for ns in rng.permutation(company.latency_ns)]), P90) < 500 * MS


def test_monsters_in_one_block() -> None:
    """A resample that draws none of the few slow stretches still has a tail of the right mass: what else is slowest."""
    rows = [[1_000]] * 30 + [[int(ns)] for ns in np.random.default_rng(3).integers(1, 10, 4_000)]
    own = population(rows)
    means = resampled(own, own, Fraction(99, 100), seed=1).causes_ns

    assert np.isfinite(means).all()
    assert abs(float(np.median(means))) < 800
