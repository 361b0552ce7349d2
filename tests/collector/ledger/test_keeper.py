"""Promises of kept ledgers: what is read back is what the events say at that moment, however and whenever they came."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_collector.facts_build import recording_of_table
from kvtrail_collector.ledger_keeper import LedgerKeeper
from kvtrail_collector.population import Population, population_of
from kvtrail_collector.questions.population import stored_population
from kvtrail_collector.questions.rows import event_rows, streams
from kvtrail_collector.store import Store
from kvtrail_collector.testing import memory_store
from kvtrail_schema.events import Event

from tests.collector.frames import events_batch
from tests.collector.ledger.stories import crowds

Shown = list[tuple[object, ...]]


@dataclass
class Now:
    """A clock that is set by hand."""

    now_ns: int = 0

    def monotonic_ns(self) -> int:
        """Not asked."""
        return self.now_ns

    def wall_ns(self) -> int:
        """What was set."""
        return self.now_ns


def shown(population: Population) -> Shown:
    """Each request: arrival, latency, whether it is censored, prompt, and what it spent on each cause that cost it time."""
    spent = [
        tuple((cause, ns) for cause, ns in zip(population.causes, row, strict=True) if ns)
        for row in population.amounts_ns.tolist()
    ]
    columns = (population.arrived_ns, population.latency_ns, population.censored, population.prompt_tokens)
    return list(zip(*(column.tolist() for column in columns), spent, strict=True))


def from_events(store: Store) -> Shown:
    """The population of all stored events, computed from them alone."""
    with store.read() as cursor:
        return shown(population_of(recording_of_table(event_rows(cursor, streams(cursor)))))


def from_ledgers(store: Store) -> Shown:
    """The population as it is kept."""
    with store.read() as cursor:
        return shown(stored_population(cursor, streams(cursor)).population)


def kept(store: Store) -> list[tuple[object, ...]]:
    """The rows of kept ledgers."""
    with store.read() as cursor:
        return cursor.execute("FROM request_ledgers ORDER BY stream_id, req").fetchall()


def send(store: Store, events: Sequence[Event]) -> None:
    """Store some events in a batch of their own."""
    ordered = sorted(events, key=lambda event: event.seq or 0)
    runs = np.split(np.array(ordered, dtype=object), np.flatnonzero(np.diff([event.seq or 0 for event in ordered]) != 1) + 1)
    for run in runs:
        if len(run):
            store.submit(events_batch(list(run))).result()


@given(crowds(), st.integers(0, 60), st.integers(1, 5))
@settings(max_examples=6, deadline=None)
def test_kept_is_what_events_say(events: list[Event], cut: int, every: int) -> None:
    """After each batch, whether a pass came in between or not, and whether rows are late or fill holes."""
    late, soon = events[cut::every], [event for place, event in enumerate(events) if place < cut or (place - cut) % every]
    with memory_store() as store:
        keeper = LedgerKeeper(store, Now(10**30))
        for part in (soon, late):
            send(store, part)

            assert from_events(store) == from_ledgers(store)

            keeper.run_once()
            keeper.run_once()

            assert from_events(store) == from_ledgers(store)


@given(crowds(), st.integers(0, 60))
@settings(max_examples=3, deadline=None)
def test_order_of_batches(events: list[Event], cut: int) -> None:
    """Two batches leave the same rows, whichever comes first, and whether they are computed once or twice."""
    found = []
    for parts in ((events[:cut], events[cut:]), (events[cut:], events[:cut])):
        with memory_store() as store:
            keeper = LedgerKeeper(store, Now(10**30))
            for part in parts:
                send(store, part)
                keeper.run_once()
            keeper.run_once()
            found.append(kept(store))

    assert found[0] == found[1]
