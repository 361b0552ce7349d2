"""The promise of one commit, held at each of its statements: fail there, and nothing of it is left."""

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from kvtrail_collector.errors import StoreBroken
from kvtrail_collector.projections import PROJECTIONS
from kvtrail_collector.store.books import load_accounts
from kvtrail_collector.store.commit import commit
from kvtrail_collector.store.hot import HOT_SQL
from kvtrail_collector.store.migrate import migrate
from kvtrail_collector.store.plan import Plan, make_plan
from kvtrail_collector.store.reach import Reach

from tests.collector.frames import batch, dropped, span

TABLES = (
    "streams",
    "stream_marks",
    "hot_events",
    "hot_common",
    "seq_ranges",
    "drop_ranges",
    "requests",
    "ops",
    "touched_requests",
)
MOST_STATEMENTS = 30


class FailsAt:
    """A connection whose nth statement, or whose commit after n statements, fails."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, place: int) -> None:
        self._connection = connection
        self._left = place

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str) -> None:
        """Run a statement, or fail."""
        self._step()
        self._connection.execute(statement)

    def commit(self) -> None:
        """Commit, or fail."""
        self._step()
        self._connection.commit()

    def _step(self) -> None:
        """Count down to the failure."""
        self._left -= 1
        if self._left == 0:
            message = "injected"
            raise duckdb.OperationalError(message)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with two batches in it, a hole and a drop between them."""
    with duckdb.connect(":memory:") as open_one:
        migrate(open_one, where="memory")
        first = make_plan({}, [batch(span(1, 10)), batch(span(21, 30), drops=(dropped(11, 12),))])
        commit(open_one, first, PROJECTIONS, where="memory", reach=Reach({}, {}))
        yield open_one


def contents(connection: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[object, ...]]]:
    """Everything in every table."""
    return {name: connection.execute(f"FROM {name} ORDER BY ALL").fetchall() for name in TABLES}


def next_plan(connection: duckdb.DuckDBPyConnection) -> Plan:
    """A plan that touches every table: it closes a hole, declares a drop, and opens a stream."""
    return make_plan(load_accounts(connection), [batch(span(5, 25), drops=(dropped(31, 33),)), batch(span(1, 9), engine="new")])


def test_a_failure_at_any_statement_leaves_nothing(connection: duckdb.DuckDBPyConnection) -> None:
    """Each statement in turn, and the commit itself, is made to fail: every table stays as it was; then all of it is there."""
    before, plan, failures = contents(connection), next_plan(connection), 0
    for place in range(1, MOST_STATEMENTS):
        failing: Any = FailsAt(connection, place)
        try:
            commit(failing, plan, PROJECTIONS, where="memory", reach=Reach({}, {}))
        except StoreBroken:
            failures += 1

            assert contents(connection) == before
        else:
            break

    changed = [name for name, rows in contents(connection).items() if rows != before[name]]
    assert changed == list(TABLES)
    assert failures >= len(TABLES)


def test_what_was_written_is_what_was_planned(connection: duckdb.DuckDBPyConnection) -> None:
    """The books read back from the tables are those of the plan, also after ranges grew together."""
    plan = next_plan(connection)
    commit(connection, plan, PROJECTIONS, where="memory", reach=Reach({}, {}))
    rows = connection.execute(f"FROM ({HOT_SQL}) SELECT stream_id, count(*) GROUP BY ALL ORDER BY ALL").fetchall()

    assert load_accounts(connection) == plan.after
    assert rows == [(1, 30), (2, 9)]
