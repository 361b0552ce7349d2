"""Promises of the hooks for what is computed outside ingest: work on the writer's thread, and requests that were touched."""

import duckdb
import pytest
from kvtrail_collector.errors import StoreBroken, StoreClosed
from kvtrail_collector.store import Store, take_touched
from kvtrail_collector.testing import memory_store

from tests.collector.frames import EVENTS_A_REQUEST, batch, span

ADD = "INSERT INTO quarantine (received_wall_ns, reason, size_bytes, body) VALUES (0, 'x', 0, ''::BLOB)"


def touched(store: Store) -> list[int | None]:
    """The requests that wait to be computed."""
    with store.read() as cursor:
        return take_touched(cursor, 100).requests["req"].to_pylist()


def count(store: Store, table: str) -> int:
    """The rows of a table."""
    with store.read() as cursor:
        return len(cursor.execute(f"FROM {table}").fetchall())


def test_work_runs_between_commits_and_answers() -> None:
    """What was handed in before it is stored when it runs; its answer comes back, and what it wrote is there."""

    def work(connection: duckdb.DuckDBPyConnection) -> int:
        connection.execute(ADD)
        return len(connection.execute("FROM events").fetchall())

    with memory_store() as store:
        store.submit(batch(span(1, 8)))
        answer = store.run(work)
        store.submit(batch(span(9, 16)))

        assert answer.result() == 8
        assert count(store, "quarantine") == 1


def test_work_that_fails_leaves_nothing_and_harms_nobody() -> None:
    """Its error reaches who sent it, nothing of it stays, and the store goes on."""

    def fails(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute(ADD)
        connection.execute("SELECT error('injected')")

    with memory_store() as store:
        with pytest.raises(StoreBroken, match="injected"):
            store.run(fails).result()

        assert count(store, "quarantine") == 0
        assert store.submit(batch(span(1, 8))).result().stored == 8
    with pytest.raises(StoreClosed):
        store.run(fails)


def test_requests_of_new_rows_are_touched() -> None:
    """Each request of which rows arrived waits once, the oldest first; rows that were there already touch nothing."""
    with memory_store() as store:
        store.submit(batch(span(1, 2 * EVENTS_A_REQUEST))).result()
        with store.read() as cursor:
            taken = take_touched(cursor, 100)
        store.run(taken.forget).result()
        store.submit(batch(span(1, EVENTS_A_REQUEST))).result()

        assert taken.requests["req"].to_pylist() == [0, 1]
        assert touched(store) == []


def test_what_is_touched_while_it_is_computed_stays() -> None:
    """A row that comes between taking and forgetting is not missed, also where the table was empty in between."""
    with memory_store() as store:
        store.submit(batch(span(1, 2 * EVENTS_A_REQUEST - 1))).result()
        with store.read() as cursor:
            taken = take_touched(cursor, 100)
        store.submit(batch([2 * EVENTS_A_REQUEST])).result()
        store.run(taken.forget).result()

        assert touched(store) == [1]
