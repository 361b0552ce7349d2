"""The ledgers of all requests at once are the ledgers of each request."""

import random
from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_collector.facts_build import recording_of_events
from kvtrail_collector.ledger_columns import ledgers_of
from kvtrail_schema.events import ClockStepped, Event

from tests.collector.ledger.peers import in_columns, in_objects
from tests.collector.ledger.stories import crowds, numbered


@given(crowds())
@settings(max_examples=80, deadline=None)
def test_columns_are_objects(events: list[Event]) -> None:
    """What is shown and what is hidden of each request is the same, to the nanosecond."""
    recording = recording_of_events(events)

    assert in_objects(recording) == in_columns(recording)


@given(crowds())
@settings(max_examples=25, deadline=None)
def test_parts_add_up(events: list[Event]) -> None:
    """Parts add up to the time from arrival to end, exactly; none is negative."""
    found = ledgers_of(recording_of_events(events).columns)

    assert (found.end_ns - found.start_ns).tolist() == found.parts.ns.sum(axis=1).tolist()
    assert found.parts.ns.min(initial=0) >= 0
    assert found.hidden.ns.min(initial=0) >= 0


@given(crowds(), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_order_of_rows(events: list[Event], shuffler: random.Random) -> None:
    """Rows may come in any order, and more than once."""
    mixed = [*events, *events[::3]]
    shuffler.shuffle(mixed)

    assert in_columns(recording_of_events(events)) == in_columns(recording_of_events(mixed))


@given(crowds(), st.integers(0, 40))
@settings(max_examples=25, deadline=None)
def test_order_of_batches(events: list[Event], cut: int) -> None:
    """Two batches give the same, whichever comes first."""
    first, second = events[:cut], events[cut:]

    assert in_columns(recording_of_events([*first, *second])) == in_columns(recording_of_events([*second, *first]))


@given(crowds(), st.integers(0, 10))
@settings(max_examples=25, deadline=None)
def test_wall_clock(events: list[Event], place: int) -> None:
    """A step in wall clock changes nothing."""
    stepped = [*events[:place], ClockStepped(t_ns=events[0].t_ns, value=-3.6e12), *events[place:]]

    assert in_columns(recording_of_events(numbered(events))) == in_columns(recording_of_events(numbered(stepped)))


def test_nobody() -> None:
    """Without requests there are no ledgers, and no error."""
    found = ledgers_of(recording_of_events(chain()).columns)

    assert (0, 0) == (len(found.start_ns), len(found.parts.codes))
