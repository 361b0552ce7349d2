"""Promises of questions in SQL: one SELECT, which changes nothing, reaches nothing else, and ends."""

from collections.abc import Iterator

import httpx
import pytest
from kvtrail_collector.errors import QuestionInvalid
from kvtrail_collector.sql import SqlDesk, SqlLimits
from kvtrail_collector.store import Store
from kvtrail_collector.testing import memory_store, running_collector


@pytest.fixture(name="store")
def empty_store() -> Iterator[Store]:
    """A store."""
    with memory_store() as store:
        yield store


def test_rows_and_columns(store: Store) -> None:
    """A query gives its columns by name and its values as JSON has them."""
    text = "SELECT 1 AS a, 18446744073709551615::UBIGINT AS b, NULL AS c, 'x'::BLOB AS d, [1.5] AS e, {'f': 1} AS g"
    found = SqlDesk(store).answer(text, SqlLimits())

    assert tuple("abcdeg") == found.columns
    assert ((1, 2**64 - 1, None, "78", ["1.5"], {"f": 1}),) == found.rows
    assert not found.is_cut


def test_views_can_be_asked(store: Store) -> None:
    """What docs/store.md lists is there."""
    for name in ("events", "requests", "ops", "prefetches", "residency", "gaps", "parts", "streams"):
        assert () == SqlDesk(store).answer(f"FROM {name}", SqlLimits()).rows


def test_rows_are_bounded(store: Store) -> None:
    """More rows than asked for are not read, and that is said."""
    found = SqlDesk(store).answer("SELECT * FROM range(10)", SqlLimits(rows=3))

    assert ((0,), (1,), (2,)) == found.rows
    assert found.is_cut


def test_time_is_bounded(store: Store) -> None:
    """A query that would not end is ended."""
    endless = "SELECT count(*) FROM range(1000000000) AS a(x), range(1000000000) AS b(y) WHERE hash(x + y) = 1"

    with pytest.raises(QuestionInvalid, match="longer than"):
        SqlDesk(store).answer(endless, SqlLimits(seconds=0.3))


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM hot_events",
        "SELECT 1; SELECT 2",
        "CREATE TABLE t (x INT)",
        "SET memory_limit = '1GB'",
        "ATTACH 'x.db'",
        "COPY streams TO 'x.csv'",
        "SELECT * FROM read_text('/etc/hostname')",
        "FROM '/etc/hostname'",
        "INSTALL httpfs",
        "SELECT * FROM no_such_table",
        "EXPLAIN ANALYZE SELECT 1",
        "WITH gone AS (DELETE FROM streams RETURNING *) SELECT * FROM gone",
        "garbage",
        "",
    ],
)
def test_nothing_else_may_be_asked(store: Store, text: str) -> None:
    """What writes, configures, reaches a file, or is no query at all is refused as the asker's error."""
    with pytest.raises(QuestionInvalid):
        SqlDesk(store).answer(text, SqlLimits())


def test_a_refused_question_leaves_the_store_well(store: Store) -> None:
    """After errors, the next question is answered."""
    desk = SqlDesk(store)
    for _ in range(3):
        with pytest.raises(QuestionInvalid):
            desk.answer("SELECT * FROM no_such_table", SqlLimits())

    assert ((1,),) == desk.answer("SELECT 1", SqlLimits()).rows


def test_over_http() -> None:
    """The same over HTTP; what is wrong with a query is told as such."""
    with running_collector() as running, httpx.Client(base_url=running.url, timeout=30.0, trust_env=False) as client:
        told = client.get("/v1/sql", params={"query": "SELECT 1 AS one"})
        refused = client.get("/v1/sql", params={"query": "DROP TABLE streams"})

    assert {"columns": ["one"], "rows": [[1]], "is_cut": False, "schema": 1} == told.json()
    assert 422 == refused.status_code
    assert "not one SELECT" in refused.json()["error"]["what"]
