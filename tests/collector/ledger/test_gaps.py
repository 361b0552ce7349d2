"""The ledgers of all gaps between tokens at once are the ledgers of each gap."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_collector.facts_build import Recording, recording_of_events
from kvtrail_collector.gap_ledgers import gap_ledgers
from kvtrail_collector.ledger_gaps import slowest_gaps
from kvtrail_collector.ledger_parts import Label
from kvtrail_schema.events import DecodeJoined, DecodeLeft, Event, RequestFirstToken, StepFinished, StepStarted, TokensEmitted
from kvtrail_schema.identity import RequestId, StepId

from tests.collector.ledger.peers import amounts_of
from tests.collector.ledger.stories import crowds, numbered

Shown = list[tuple[int, int, tuple[tuple[Label, int], ...]]]


@st.composite
def decodes(draw: st.DrawFn) -> list[Event]:
    """Requests that also decode, in steps of some length and distance, now and then without a token or with several."""
    events: list[Event] = list(draw(crowds()))
    t_ns, steps = draw(st.integers(0, 100)), draw(st.integers(2, 8))
    for number in range(100, 100 + steps):
        start = t_ns + draw(st.integers(0, 15))
        t_ns = start + draw(st.integers(0, 30))
        prefill = draw(st.integers(0, 1))
        events.append(StepStarted(t_ns=start, step=StepId(number)))
        events.append(StepFinished(t_ns=t_ns, step=StepId(number), tokens=4, prefill_tokens=prefill))
    step = st.integers(100, 100 + steps).map(StepId)
    for req in (RequestId(1), RequestId(2)):
        own: dict[str, Any] = {"t_ns": t_ns, "req": req}
        events.append(RequestFirstToken(t_ns=t_ns, req=req, step=StepId(100)))
        events += [DecodeJoined(step=StepId(101), **own)] * draw(st.integers(0, 1))
        events += [DecodeLeft(step=draw(step), **own)] * draw(st.integers(0, 1))
        events += [
            TokensEmitted(step=draw(step), tokens=draw(st.integers(0, 2)), **own) for _ in range(draw(st.integers(0, 2)))
        ]
    return numbered(draw(st.permutations(events)), gap_at=draw(st.none() | st.integers(2, 60)))


def in_objects(recording: Recording) -> Shown:
    """Each gap of each request, one after the other."""
    found = [(place, slowest_gaps(recording, facts, 1_000)) for place, facts in enumerate(recording.requests)]
    return sorted(
        (place, gap.ns, tuple((Label(part.component, part.tier, part.reason), part.ns) for part in gap.parts))
        for place, gaps in found
        for gap in gaps
    )


def in_columns(recording: Recording) -> Shown:
    """Each gap, all at once."""
    found = gap_ledgers(recording)
    lengths = (found.end_ns - found.start_ns).tolist()
    rows = zip(found.gaps.request.tolist(), lengths, amounts_of(found.parts), strict=True)
    return sorted((place, ns, tuple(parts.items())) for place, ns, parts in rows)


@given(decodes())
@settings(max_examples=80, deadline=None)
def test_columns_are_objects(events: list[Event]) -> None:
    """Every gap, its length, and what it went to, to the nanosecond."""
    recording = recording_of_events(events)

    assert in_objects(recording) == in_columns(recording)


@given(decodes())
@settings(max_examples=25, deadline=None)
def test_parts_add_up(events: list[Event]) -> None:
    """Parts add up to the length of the gap, exactly; none is negative."""
    found = gap_ledgers(recording_of_events(events))

    assert (found.end_ns - found.start_ns).tolist() == found.parts.ns.sum(axis=1).tolist()
    assert found.parts.ns.min(initial=0) >= 0
