"""Slow stretches of time, listed: each of several, none where nothing is slow, within what is asked for."""

from collections.abc import Iterable

import msgspec
import numpy as np
import pytest
from kvtrail_collector.questions.attribution import attribute_stored
from kvtrail_collector.questions.rows import streams
from kvtrail_collector.questions.scope import Scope
from kvtrail_collector.questions.spikes import Spike, spikes
from kvtrail_collector.store import Incoming, Store
from kvtrail_collector.testing import memory_store
from kvtrail_schema import events as e
from kvtrail_schema.batch import DecodedBatch
from kvtrail_schema.events import Event
from kvtrail_schema.identity import RequestId
from kvtrail_schema.reasons import FinishReason

from tests.collector.frames import header, table

MS = 1_000_000
SECOND = 1_000 * MS
SLOW = ((60, 80), (140, 150))
"""Seconds in which requests are slow."""
NEAR_S = 2
"""A border may lie so far from where slowness began or ended."""


@pytest.fixture(scope="module")
def twice_slow() -> Iterable[Store]:
    """200 s of requests, ten a second; slow for 20 s and, later, for 10."""
    with memory_store() as store:
        tell(store, run(SLOW))
        yield store


def run(slow: Iterable[tuple[int, int]]) -> list[Event]:
    """Requests of about 20 ms, and of ten times that while it is slow."""
    draw, told = np.random.default_rng(5), list[Event]()
    for number in range(2_000):
        at_ns = number * SECOND // 10
        is_slow = any(first * SECOND <= at_ns < last * SECOND for first, last in slow)
        took_ns = int(draw.gamma(9, 2) * (10 if is_slow else 1) * MS)
        who = RequestId(number + 1)
        told += [
            e.RequestArrived(req=who, tokens=100, t_ns=at_ns),
            e.RequestFirstToken(req=who, t_ns=at_ns + took_ns),
            e.RequestFinished(req=who, tokens=1, reason=FinishReason.STOP, t_ns=at_ns + took_ns),
        ]
    ordered = sorted(told, key=lambda event: event.t_ns)
    return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(ordered, 1)]


def tell(store: Store, told: list[Event]) -> None:
    """Store what an engine told."""
    head = header([event.seq for event in told], engine="e1")
    store.submit(Incoming(DecodedBatch(head, table(told)), 0)).result(10)


def listed(store: Store, scope: Scope) -> tuple[Spike, ...]:
    """The spikes of a scope."""
    with store.read() as cursor:
        return spikes(cursor, scope, None).spikes


def test_each_of_several_spikes_is_listed_the_latest_first(twice_slow: Store) -> None:
    """Whoever comes in the morning finds also the spike that was not the costliest."""
    found = listed(twice_slow, Scope("e1"))
    borders = [(spike.start_ns / SECOND, spike.end_ns / SECOND) for spike in found]

    assert [pytest.approx(one, abs=NEAR_S) for one in reversed(SLOW)] == borders
    assert all(spike.p95_ms > 5 * spike.usual_p95_ms for spike in found)
    assert sum(spike.requests for spike in found) == pytest.approx(300, abs=20)


def test_of_two_spikes_none_hides_the_other(twice_slow: Store) -> None:
    """Each is as unusual as the other: the search explains one and tells of the other besides; the list has both."""
    with twice_slow.read() as cursor:
        searched = attribute_stored(cursor, streams(cursor))

    begins = [one.start_ns / SECOND for one in searched.other_spikes]
    if searched.window is not None:
        begins.append(searched.window.start_ns / SECOND)

    assert [pytest.approx(start, abs=NEAR_S) for start, _ in SLOW] == sorted(begins)
    assert len(listed(twice_slow, Scope("e1"))) == len(SLOW)


def test_the_spike_that_is_explained_unasked_is_in_the_list() -> None:
    """The page marks in the list what it explains: both find the same, though they ask in different ways."""
    with memory_store() as store:
        tell(store, run(SLOW[:1]))
        with store.read() as cursor:
            explained = attribute_stored(cursor, streams(cursor)).window
        (spike,) = listed(store, Scope("e1"))

        assert explained is not None
        assert explained.start_ns == pytest.approx(spike.start_ns, abs=NEAR_S * SECOND)
        assert explained.end_ns == pytest.approx(spike.end_ns, abs=NEAR_S * SECOND)


def test_a_list_of_a_stretch_of_time_holds_its_own_spikes(twice_slow: Store) -> None:
    """A long night can be looked at hour by hour."""
    found = listed(twice_slow, Scope("e1", start_ns=100 * SECOND))

    assert [SLOW[1][0]] == [pytest.approx(spike.start_ns / SECOND, abs=NEAR_S) for spike in found]


def test_where_nothing_is_slow_nothing_is_listed() -> None:
    """Chance makes no spikes; and no requests make no error."""
    with memory_store() as store:
        before = listed(store, Scope("e1"))
        tell(store, run(()))

        assert (before, listed(store, Scope("e1"))) == ((), ())
