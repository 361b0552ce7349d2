"""Resamples: fair, repeatable, and of whole stretches."""

import numpy as np
from kvtrail_collector.bootstrap import block_requests, resample
from kvtrail_collector.population import Population

from tests.collector.attribution.populations import MS, population


def noisy(requests: int, seed: int, extra_ms: float = 0.0) -> Population:
    """Requests with random reads, and more of them by a constant."""
    rng = np.random.default_rng(seed)
    reads = rng.exponential(20 * MS, requests) + extra_ms * MS
    prefill = rng.uniform(5 * MS, 10 * MS, requests)
    return population([[0, int(read), int(ns)] for read, ns in zip(reads, prefill, strict=True)])


def test_repeatable() -> None:
    """The same seed gives the same resamples, another seed others."""
    window, reference = noisy(300, 1, 30), noisy(600, 2)
    ones = np.ones(600)
    first, again, other = (resample(window, reference, 0.9, ones, seed=seed) for seed in (5, 5, 6))

    assert np.array_equal(first.causes_ns, again.causes_ns)
    assert not np.array_equal(first.causes_ns, other.causes_ns)


def test_difference_is_found() -> None:
    """What differs leads in all resamples and its interval holds the difference; what does not includes zero."""
    found = resample(noisy(900, 2, 30), noisy(900, 2), 0.5, np.ones(900), seed=3)
    low, high = found.interval_ns([1])

    assert low < 30 * MS < high
    assert found.first_share([1], [0, 1, 2]) == 1.0
    assert found.interval_ns([2])[0] < 0 < found.interval_ns([2])[1]


def test_no_difference() -> None:
    """Of pairs of windows of the same kind, about nineteen of twenty give an interval around zero."""
    held = 0
    for seed in range(30):
        pair = noisy(900, 2 * seed), noisy(900, 2 * seed + 1)
        found = resample(*pair, 0.9, np.ones(900), seed=3, resamples=200)
        low, high = found.interval_ns([0, 1, 2])
        held += low < 0 < high

    assert 26 <= held <= 30


def test_blocks_hold_five_medians() -> None:
    """Neighbours are drawn together for five median latencies, but at least five blocks make a window."""
    assert np.ceil(5 * 20 / 30) <= block_requests(population([[20 * MS]] * 100)) <= 5
    assert block_requests(population([[900 * MS]] * 100)) == 20
