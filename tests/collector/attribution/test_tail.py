"""Tail means and their differences add up, exactly."""

from fractions import Fraction
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_collector.attribution_strata import Strata
from kvtrail_collector.attribution_tail import QUANTILES, choose_quantile, excess_of, quantiles_for, tail_of

from tests.collector.attribution.populations import population

_AMOUNTS = st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=1, max_size=60)


def strata(window: list[int], reference: list[int]) -> Strata:
    """Strata as given; -1 is a newcomer."""
    return Strata(np.array(window, dtype=np.int64), np.array(reference, dtype=np.int64), max([*window, *reference]) + 1)


def one_stratum(window: int, reference: int) -> Strata:
    """All are of the same kind."""
    return strata([0] * window, [0] * reference)


@given(_AMOUNTS, _AMOUNTS, st.sampled_from(QUANTILES), st.data())
@settings(max_examples=80, deadline=None)
def test_differences_add_up(window: list[list[int]], reference: list[list[int]], p: Fraction, data: st.DataObject) -> None:
    """The differences of all causes add up to `within`, and mix and within to the whole, exactly, whatever the strata."""
    there = data.draw(st.lists(st.integers(0, 2), min_size=len(reference), max_size=len(reference)))
    here = data.draw(st.lists(st.sampled_from([*there, -1]), min_size=len(window), max_size=len(window)))
    here[0] = there[0]
    excess = excess_of(population(window), population(reference), p, strata(here, there))

    assert excess.within_ns == sum(excess.causes_ns)
    assert excess.tail_ns == excess.mix_ns + excess.within_ns
    assert excess.tail_ns == excess.whole.mean_ns - tail_of(population(reference), p).mean_ns


@given(_AMOUNTS, st.sampled_from(QUANTILES), st.lists(st.integers(1, 9), min_size=3, max_size=3), st.data())
@settings(max_examples=80, deadline=None)
def test_mass(amounts: list[list[int]], p: Fraction, weights: list[int], data: st.DataObject) -> None:
    """The tail has a mass of exactly 1 - p, ties or not, and nobody in it is faster than somebody outside."""
    requests, parts = population(amounts), [Fraction(weight, 7) for weight in weights]
    stratum = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(amounts), max_size=len(amounts))), dtype=np.int64)
    tail = tail_of(requests, p, stratum, parts)
    each = [parts[place] for place in stratum[tail.rows].tolist()]
    sure = len(each) - tail.ties
    outside = np.delete(requests.latency_ns, tail.rows)

    assert (1 - p) * sum(parts[place] for place in stratum.tolist()) == sum(each[:sure]) + tail.tie_share * sum(each[sure:])
    assert 0 < tail.tie_share <= 1
    assert all(ns < tail.quantile_ns for ns in outside.tolist())


@given(_AMOUNTS, _AMOUNTS, st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_order_does_not_matter(window: list[list[int]], reference: list[list[int]], random: Random) -> None:
    """Rows in another order give the same figures."""
    mixed = random.sample(window, len(window))
    one, other = (
        excess_of(population(rows), population(reference), QUANTILES[2], one_stratum(len(window), len(reference)))
        for rows in (window, mixed)
    )

    assert (one.tail_ns, one.quantile_ns, one.causes_ns) == (other.tail_ns, other.quantile_ns, other.causes_ns)


@given(_AMOUNTS, _AMOUNTS, st.integers(2, 1_000_000))
@settings(max_examples=50, deadline=None)
def test_scale(window: list[list[int]], reference: list[list[int]], factor: int) -> None:
    """Times that are so many times longer give differences that are so many times larger, exactly."""
    same = one_stratum(len(window), len(reference))
    one = excess_of(population(window), population(reference), QUANTILES[2], same)
    longer = [population([[factor * ns for ns in row] for row in rows]) for rows in (window, reference)]
    other = excess_of(longer[0], longer[1], QUANTILES[2], same)

    assert tuple(factor * ns for ns in one.causes_ns) == other.causes_ns
    assert factor * one.quantile_ns == other.quantile_ns


def test_ties() -> None:
    """Requests that tie at the quantile share what is left of the tail."""
    tail = tail_of(population([[10], [5], [5], [5], [5], [1], [1], [1], [1], [1]]), Fraction(7, 10))

    assert (Fraction(1, 2), 4, [0, 1, 2, 3, 4]) == (tail.tie_share, tail.ties, tail.rows.tolist())
    assert Fraction(20, 3) == tail.mean_ns


def test_one_stratum_is_no_mix() -> None:
    """Where all are of one kind, the mix explains nothing."""
    excess = excess_of(population([[9], [8], [7], [6]]), population([[3], [2], [1], [1]]), Fraction(1, 2), one_stratum(4, 4))

    assert excess.mix_ns == 0
    assert Fraction(6) == excess.within_ns


def test_mix() -> None:
    """An excess that comes from more requests of a slow stratum is mix, not within."""
    own = strata([1] * 8 + [0] * 8, [1] * 4 + [0] * 12)
    excess = excess_of(population([[10]] * 8 + [[1]] * 8), population([[10]] * 4 + [[1]] * 12), Fraction(1, 2), own)

    assert Fraction(2) == own.weights()[1]
    assert excess.within_ns == 0
    assert excess.mix_ns == excess.tail_ns > 0


def test_newcomers_are_mix() -> None:
    """What requests add that the reference has nothing like is mix; the others are compared without them."""
    own = strata([-1] * 4 + [0] * 4, [0] * 8)
    excess = excess_of(population([[90]] * 4 + [[2]] * 4), population([[1]] * 8), Fraction(1, 2), own)

    assert (Fraction(1), Fraction(88)) == (excess.within_ns, excess.mix_ns)


def test_quantile() -> None:
    """The highest quantile with thirty requests in both tails is used; below sixty requests there is none."""
    assert Fraction(99, 100) == choose_quantile(3_000, 3_000)
    assert Fraction(95, 100) == choose_quantile(3_000, 2_999)
    assert Fraction(90, 100) == choose_quantile(300, 599)
    assert Fraction(1, 2) == choose_quantile(60, 299)
    assert choose_quantile(59, 3_000) is None
    assert (Fraction(95, 100), Fraction(90, 100), Fraction(1, 2)) == quantiles_for(600, 900)
