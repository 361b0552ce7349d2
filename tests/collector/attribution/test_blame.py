"""Blame: charged is waited, to the nanosecond, and falls on what was in service."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_collector.blame import QueueWait, Service, charge
from kvtrail_schema.identity import OpId

_SPANS = st.tuples(st.integers(0, 60), st.integers(0, 40)).map(lambda pair: (pair[0], pair[0] + pair[1]))
_WAITS = st.lists(_SPANS.map(lambda span: QueueWait(*span)), max_size=8)
_SERVICES = st.lists(_SPANS, max_size=8).map(
    lambda spans: [Service(start, end, OpId(place + 1)) for place, (start, end) in enumerate(spans)]
)


def charged_by_the_book(waits: list[QueueWait], services: list[Service]) -> dict[OpId | None, int]:
    """Cut time at every border; in each piece share what each waiter waits among all in service."""
    found: dict[OpId | None, int] = {}
    for low, high in pairwise(sorted({border for span in (*waits, *services) if span[0] < span[1] for border in span[:2]})):
        waiting = sum(wait.start_ns <= low and high <= wait.end_ns for wait in waits)
        ops = sorted(s.op for s in services if s.start_ns <= low and high <= s.end_ns)
        serving: list[OpId | None] = [*ops] if ops else [None]
        for place, op in enumerate(serving):
            rest = (high - low) % len(serving) if place == 0 else 0
            found[op] = found.get(op, 0) + waiting * ((high - low) // len(serving) + rest)
    return {op: ns for op, ns in found.items() if ns}


@given(_WAITS, _SERVICES)
@settings(max_examples=300, deadline=None)
def test_charged_is_waited(waits: list[QueueWait], services: list[Service]) -> None:
    """Every nanosecond waited is charged once."""
    assert sum(wait.end_ns - wait.start_ns for wait in waits) == sum(charge(waits, services).values())


@given(_WAITS, _SERVICES)
@settings(max_examples=300, deadline=None)
def test_by_the_book(waits: list[QueueWait], services: list[Service]) -> None:
    """The sweep charges what the slow obvious way does, op by op."""
    assert charged_by_the_book(waits, services) == {op: ns for op, ns in charge(waits, services).items() if ns}


def test_shared_service() -> None:
    """Two ops in service share a wait; the odd nanosecond goes to the smaller op; idle time is nobody's."""
    charges = charge([QueueWait(0, 11)], [Service(0, 5, OpId(9)), Service(0, 5, OpId(4))])

    assert charges == {OpId(4): 3, OpId(9): 2, None: 6}
