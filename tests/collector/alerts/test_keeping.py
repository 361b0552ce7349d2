"""What happened with alerts is written down, once, whatever the store does at first."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import duckdb
from kvtrail_collector.alerts.audit import last_audit
from kvtrail_collector.alerts.keeping import Keeping
from kvtrail_collector.alerts.shapes import AuditRow
from kvtrail_collector.errors import StoreFull
from kvtrail_collector.store import Store
from kvtrail_collector.testing import memory_store


def row(number: int) -> AuditRow:
    """Something that happened."""
    return AuditRow(number, "chat", "fired", "", "a-rule", 0, "")


def kept(store: Store) -> list[int]:
    """What is written down, oldest first."""
    store.run(lambda _: None).result(10)
    with store.read() as cursor:
        return [each.wall_ns for each in reversed(last_audit(cursor, 100))]


def test_what_the_store_did_not_take_is_tried_again() -> None:
    """Refused at once, or failed later: the next look writes it, in order, and once."""
    with memory_store() as store:

        def full(_: Callable[[duckdb.DuckDBPyConnection], None]) -> Future[None]:
            raise StoreFull("full", where="store", do="come again")

        def failing(_: Callable[[duckdb.DuckDBPyConnection], None]) -> Future[None]:
            failed: Future[None] = Future()
            failed.set_exception(duckdb.IOException("no space"))
            return failed

        ways = iter((full, failing, store.run))

        def way(action: Callable[[duckdb.DuckDBPyConnection], None]) -> Future[None]:
            """Each time another one."""
            return next(ways)(action)

        keeping = Keeping(way)
        for number in range(3):
            keeping.keep([row(number)])

        assert [0, 1, 2] == kept(store)
        keeping.keep([])
        assert ([0, 1, 2], 0) == (kept(store), keeping.waiting)


def test_what_waits_is_bounded() -> None:
    """A store that takes nothing for days costs no more memory than the audit has rows."""

    def full(_: Callable[[duckdb.DuckDBPyConnection], None]) -> Future[None]:
        raise StoreFull("full", where="store", do="come again")

    keeping = Keeping(full)
    for number in range(5):
        keeping.keep([row(number)] * 9_000)

    assert 20_000 == keeping.waiting
