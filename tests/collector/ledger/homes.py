"""Streams of a store, one for each example, and what is told of their requests: by their events, and by kept ledgers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import duckdb
import numpy as np
from kvtrail_collector.facts_build import recording_of_table
from kvtrail_collector.population import Population, population_of
from kvtrail_collector.questions.population import stored_population
from kvtrail_collector.questions.rows import StreamRow, event_rows, streams
from kvtrail_collector.store import Store
from kvtrail_collector.testing import memory_store
from kvtrail_schema.events import Event

from tests.collector.frames import events_batch

Shown = list[tuple[object, ...]]
EXAMPLES_A_STORE: Final = 25


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


@dataclass
class Home:
    """A store of several streams, of which one is looked at; opening one takes longer than an example."""

    store: Store
    engine: str

    def stream(self, cursor: duckdb.DuckDBPyConnection) -> list[StreamRow]:
        """The stream that is looked at, once it is known."""
        return [stream for stream in streams(cursor) if stream.engine == self.engine]

    def from_events(self) -> Shown:
        """The population of all stored events, computed from them alone."""
        with self.store.read() as cursor:
            return shown(population_of(recording_of_table(event_rows(cursor, self.stream(cursor)))))

    def from_ledgers(self) -> Shown:
        """The population as it is kept."""
        with self.store.read() as cursor:
            return shown(stored_population(cursor, self.stream(cursor)).population)

    def kept(self) -> list[tuple[object, ...]]:
        """The rows of kept ledgers."""
        with self.store.read() as cursor:
            ids = [stream.stream_id for stream in self.stream(cursor)]
            table = cursor.execute("FROM request_ledgers WHERE stream_id IN (SELECT unnest(?)) ORDER BY req", [ids])
            return [row[1:] for row in table.fetchall()]

    def send(self, events: Sequence[Event]) -> None:
        """Store some events, each run of seqs as a batch of its own."""
        ordered = sorted(events, key=lambda event: event.seq or 0)
        cuts = np.flatnonzero(np.diff([event.seq or 0 for event in ordered]) != 1) + 1
        runs = np.split(np.array(ordered, dtype=object), cuts)
        sent = [self.store.submit(events_batch(list(run), engine=self.engine)) for run in runs if len(run)]
        for receipt in sent:
            receipt.result()


class Homes:
    """Homes for many examples, some in one store. A context manager."""

    def __init__(self) -> None:
        self._store, self._used = memory_store(), 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def next(self) -> Home:
        """A home in which nothing is."""
        if self._used % EXAMPLES_A_STORE == EXAMPLES_A_STORE - 1:
            self._store.close()
            self._store = memory_store()
        self._used += 1
        return Home(self._store, f"engine-{self._used}")


def shown(population: Population) -> Shown:
    """Each request: arrival, latency, whether it is censored, prompt, and what it spent on each cause that cost it time."""
    spent = [
        tuple((cause, ns) for cause, ns in zip(population.causes, row, strict=True) if ns)
        for row in population.amounts_ns.tolist()
    ]
    columns = (population.arrived_ns, population.latency_ns, population.censored, population.prompt_tokens)
    return list(zip(*(column.tolist() for column in columns), spent, strict=True))
