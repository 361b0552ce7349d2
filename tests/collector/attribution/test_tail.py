"""Tail means and their differences add up, exactly."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_collector.attribution_tail import QUANTILES, choose_quantile, excess_of, mix_weights, tail_of

from tests.collector.attribution.populations import population

_AMOUNTS = st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=1, max_size=60)


@given(_AMOUNTS, _AMOUNTS, st.sampled_from(QUANTILES), st.data())
@settings(max_examples=200, deadline=None)
def test_differences_add_up(window: list[list[int]], reference: list[list[int]], p: Fraction, data: st.DataObject) -> None:
    """The differences of all causes add up to `within`, and mix and within to the whole, exactly, whatever the strata."""
    reference_strata = data.draw(st.lists(st.integers(0, 2), min_size=len(reference), max_size=len(reference)))
    strata = st.lists(st.sampled_from(reference_strata), min_size=len(window), max_size=len(window))
    excess = excess_of(population(window, data.draw(strata)), population(reference, reference_strata), p)

    assert excess.within_ns == sum(excess.causes_ns)
    assert excess.tail_ns == excess.mix_ns + excess.within_ns


@given(_AMOUNTS, st.sampled_from(QUANTILES))
@settings(max_examples=100, deadline=None)
def test_mass(amounts: list[list[int]], p: Fraction) -> None:
    """The tail has a mass of exactly 1 - p, ties or not, and nobody in it is faster than somebody outside."""
    requests = population(amounts)
    tail = tail_of(requests, p, [Fraction(1)] * len(requests))
    slowest_outside = [ns for ns, weight in zip(requests.latency_ns.tolist(), tail.weights, strict=True) if weight < 1]

    assert (1 - p) * len(requests) == sum(tail.weights)
    assert all(ns <= tail.quantile_ns for ns in slowest_outside)


def test_ties() -> None:
    """Requests that tie at the quantile share what is left of the tail."""
    tail = tail_of(population([[10], [5], [5], [5], [5], [1], [1], [1], [1], [1]]), Fraction(1, 2), [Fraction(1)] * 10)

    assert [Fraction(1), *[Fraction(1)] * 4, *[Fraction(0)] * 5] == list(tail.weights)
    assert Fraction(30, 5) == tail.mean_ns


def test_one_stratum_is_no_mix() -> None:
    """While there is one stratum, the mix explains nothing."""
    excess = excess_of(population([[9], [8], [7], [6]]), population([[3], [2], [1], [1]]), Fraction(1, 2))

    assert excess.mix_ns == 0
    assert Fraction(6) == excess.within_ns


def test_mix() -> None:
    """An excess that comes from more requests of a slow stratum is mix, not within."""
    window = population([[10]] * 8 + [[1]] * 8, [1] * 8 + [0] * 8)
    reference = population([[10]] * 4 + [[1]] * 12, [1] * 4 + [0] * 12)
    excess = excess_of(window, reference, Fraction(1, 2))

    assert Fraction(2) == mix_weights(window.strata, reference.strata)[0]
    assert excess.within_ns == 0
    assert excess.mix_ns == excess.tail_ns > 0


def test_quantile() -> None:
    """The highest quantile with thirty requests in both tails is used; below sixty requests there is none."""
    assert Fraction(99, 100) == choose_quantile(3_000, 3_000)
    assert Fraction(95, 100) == choose_quantile(3_000, 2_999)
    assert Fraction(90, 100) == choose_quantile(300, 599)
    assert Fraction(1, 2) == choose_quantile(60, 299)
    assert choose_quantile(59, 3_000) is None
