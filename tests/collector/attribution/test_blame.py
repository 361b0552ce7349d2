"""Blame: charged is waited, to the nanosecond, and falls on what was in service."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_collector.blame import Charges, Spans, charge

Span = tuple[int, int]
_SPANS = st.tuples(st.integers(0, 60), st.integers(0, 40)).map(lambda pair: (pair[0], pair[0] + pair[1]))
_MANY = st.lists(_SPANS, max_size=12)


def charged(waits: list[Span], services: list[Span]) -> Charges:
    """The charges of the waits in one queue."""
    return charge(_spans(waits), _spans(services))


def _spans(spans: list[Span]) -> Spans:
    """Intervals as columns."""
    columns = np.array(spans, dtype=np.int64).reshape(len(spans), 2)
    return Spans(columns[:, 0], columns[:, 1])


def by_the_book(waits: list[Span], services: list[Span]) -> tuple[list[int], int]:
    """Cut time at every border; in each piece share what each waiter waits among all in service."""
    found, idle = [0] * len(services), 0
    for low, high in pairwise(sorted({border for span in (*waits, *services) if span[0] < span[1] for border in span})):
        waiting = sum(start <= low and high <= end for start, end in waits)
        serving = [place for place, (start, end) in enumerate(services) if start <= low and high <= end]
        idle += 0 if serving else waiting * (high - low)
        for place in serving:
            rest = (high - low) % len(serving) if place == serving[0] else 0
            found[place] += waiting * ((high - low) // len(serving) + rest)
    return found, idle


def by_the_nanosecond(waits: list[Span], services: list[Span]) -> tuple[list[Fraction], int]:
    """Look at each nanosecond by itself, and share it evenly, in fractions."""
    found, idle = [Fraction(0)] * len(services), 0
    for now in range(101):
        waiting = sum(start <= now < end for start, end in waits)
        serving = [place for place, (start, end) in enumerate(services) if start <= now < end]
        idle += 0 if serving else waiting
        for place in serving:
            found[place] += Fraction(waiting, len(serving))
    return found, idle


@given(_MANY, _MANY)
@settings(max_examples=200, deadline=None)
def test_charged_is_waited(waits: list[Span], services: list[Span]) -> None:
    """Every nanosecond waited is charged once."""
    charges = charged(waits, services)

    assert sum(end - start for start, end in waits) == int(charges.services_ns.sum()) + charges.idle_ns


@given(_MANY, _MANY)
@settings(max_examples=200, deadline=None)
def test_by_the_book(waits: list[Span], services: list[Span]) -> None:
    """Prefix sums charge what the slow obvious way does, op by op."""
    charges = charged(waits, services)

    assert by_the_book(waits, services) == (charges.services_ns.tolist(), charges.idle_ns)


@given(_MANY, _MANY)
@settings(max_examples=100, deadline=None)
def test_by_the_nanosecond(waits: list[Span], services: list[Span]) -> None:
    """Nobody is charged otherwise than each nanosecond by itself would say, but for what does not divide: between two borders
    each wait has less than a nanosecond left over for each op in service but one.
    """
    charges = charged(waits, services)
    fair, idle = by_the_nanosecond(waits, services)
    rounding = left_over(waits, services)

    assert idle == charges.idle_ns
    assert all(abs(ns - share) <= rounding for ns, share in zip(charges.services_ns.tolist(), fair, strict=True))
    assert all(ns == 0 for ns, share in zip(charges.services_ns.tolist(), fair, strict=True) if not share)


def left_over(waits: list[Span], services: list[Span]) -> int:
    """The most that one op may be charged beside its fair share; nothing where one alone is in service at a time."""
    borders = sorted({border for span in (*waits, *services) for border in span})
    there = [[sum(a <= start < b for a, b in spans) for spans in (waits, services)] for start in borders]
    return sum(waiting * max(serving - 1, 0) for waiting, serving in there)


def test_shared_service() -> None:
    """Two ops in service share a wait; the odd nanosecond goes to the first; idle time is nobody's."""
    charges = charged([(0, 11)], [(0, 5), (0, 5)])

    assert ([3, 2], 6) == (charges.services_ns.tolist(), charges.idle_ns)
