"""Promises of the keeper of ledgers when a pass fails: whatever failed, it goes on, counts it, and catches up."""

import time

import pytest
from kvtrail_collector import ledger_keeper
from kvtrail_collector.ledger_keeper import LedgerKeeper
from kvtrail_collector.ledger_pass import Computed, compute
from kvtrail_collector.store import Store
from kvtrail_collector.testing import memory_store
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.events import StepStarted
from kvtrail_schema.identity import StepId

from tests.collector.frames import batch, events_batch, span

LONGEST_S = 20.0


@pytest.fixture
def fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first computation of all finds a contradiction; the ones after it are the real ones."""
    left = [AssertionError("ledgers do not add up")]

    def first_fails(*args: object) -> Computed:
        """Fail once."""
        if left:
            raise left.pop()
        return compute(*args)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(ledger_keeper, "compute", first_fails)


def holes(store: Store) -> int:
    """How many holes ledgers know of."""
    with store.read() as cursor:
        row = cursor.execute("SELECT count(*) FROM ledger_holes").fetchone()
    return int(row[0]) if row else 0


@pytest.mark.usefixtures("fails_once")
def test_a_defect_ends_no_ledgers() -> None:
    """A contradiction in one pass is counted; the thread lives on, and the next pass keeps what that one did not."""
    with memory_store() as store:
        store.submit(batch(span(1, 16))).result()
        with LedgerKeeper(store, SystemClock()) as keeper:
            until = time.monotonic() + LONGEST_S
            while keeper.statistics().requests < 2 and time.monotonic() < until:
                time.sleep(0.05)
            found = keeper.statistics()

    assert 1 == found.failures
    assert 2 <= found.requests


def test_holes_are_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that failed after it saw new holes leaves them to the next one, also where nothing is stored in between."""
    with memory_store() as store:
        keeper = LedgerKeeper(store, SystemClock())
        store.submit(batch(span(1, 16))).result()
        while keeper.run_once():
            pass
        store.submit(events_batch([StepStarted(seq=20, t_ns=20_000, step=StepId(1))])).result()
        with monkeypatch.context() as broken:
            broken.setattr(ledger_keeper, "compute", lambda *_: 1 // 0)
            with pytest.raises(ZeroDivisionError):
                keeper.run_once()
        before = holes(store)
        keeper.run_once()

        assert 0 == before
        assert 1 == holes(store)
