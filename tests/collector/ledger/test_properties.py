"""What holds for every ledger, whatever the story."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_collector.facts import RequestFacts
from kvtrail_collector.facts_build import facts_of
from kvtrail_collector.ledger import Ledger, ledger_of
from kvtrail_collector.ledger_parts import Label
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import ClockStepped, Event, FaultCleared, FaultInjected

from tests.collector.ledger.oracle import amounts_by_the_book
from tests.collector.ledger.stories import REQUEST, numbered, stories


def facts_from(events: list[Event]) -> RequestFacts:
    """The facts of the story's request."""
    facts = facts_of(events, REQUEST)
    assert facts is not None
    return facts


def amounts(ledger: Ledger) -> dict[Label, int]:
    """The parts of a ledger by label."""
    return {Label(part.component, part.tier, part.reason): part.ns for part in ledger.parts}


@given(stories())
@settings(max_examples=150, deadline=None)
def test_parts_add_up(events: list[Event]) -> None:
    """Parts add up to the time from arrival to end, exactly; none is negative, shown or hidden."""
    facts = facts_from(events)
    ledger = ledger_of(facts)

    assert facts.end_ns - facts.arrived_ns == sum(part.ns for part in ledger.parts)
    assert all(part.ns > 0 for part in (*ledger.parts, *ledger.hidden))


@given(stories())
@settings(max_examples=150, deadline=None)
def test_by_the_book(events: list[Event]) -> None:
    """Painting in layers owns what asking the rules of each piece in turn would."""
    facts = facts_from(events)

    assert amounts_by_the_book(facts) == amounts(ledger_of(facts))


@given(stories(), st.randoms(use_true_random=False))
@settings(max_examples=75, deadline=None)
def test_order_of_rows(events: list[Event], shuffler: random.Random) -> None:
    """Rows may come in any order."""
    mixed = list(events)
    shuffler.shuffle(mixed)

    assert ledger_of(facts_from(events)) == ledger_of(facts_from(mixed))


@given(stories(), st.integers(0, 10))
@settings(max_examples=40, deadline=None)
def test_wall_clock(events: list[Event], place: int) -> None:
    """A step in wall clock changes nothing."""
    whole = numbered(events)
    stepped = numbered([*events[:place], ClockStepped(t_ns=events[0].t_ns, value=-3.6e12), *events[place:]])

    assert ledger_of(facts_from(whole)).parts == ledger_of(facts_from(stepped)).parts


@given(stories(), st.integers(0, 10).filter(lambda place: place != 3))
@settings(max_examples=40, deadline=None)
def test_drills_are_not_read(events: list[Event], place: int) -> None:
    """What a drill says about itself changes nothing, and its seqs are no holes."""
    whole = numbered(events, gap_at=3)
    drill = [FaultInjected(t_ns=7, text="nvme-slow", tier=Tier.NVME), FaultCleared(t_ns=9, text="nvme-slow")]
    drilled = numbered([*events[:place], *drill, *events[place:]], gap_at=3 if place > 3 else 5)

    assert ledger_of(facts_from(whole)).parts == ledger_of(facts_from(drilled)).parts


@given(stories())
@settings(max_examples=40, deadline=None)
def test_repeated_rows(events: list[Event]) -> None:
    """A row that comes twice counts once."""
    assert ledger_of(facts_from(events)) == ledger_of(facts_from([*events, *events]))
