"""Promises of the transaction: all of a commit or nothing of it, and one bad batch harms no other."""

from string import Template

import pytest
from kvtrail_collector.errors import StoreBroken, StoreClosed, StoreFull
from kvtrail_collector.projections import PROJECTIONS, Projection
from kvtrail_collector.store import MEMORY, Store
from kvtrail_collector.store.account import Receipt
from kvtrail_collector.store.inbox import Delivery, Inbox

from tests.collector.frames import batch, span

# Fails inside the commit, after the events, the books and the real projections were written, whenever seq 13 is among the rows.
BROKEN_AT_13 = Projection("requests", "req", Template("SELECT error('injected') FROM $source WHERE seq = 13"))
TABLES = ("streams", "stream_marks", "events", "seq_ranges", "drop_ranges", "requests", "ops", "touched_requests")


def contents(store: Store) -> dict[str, list[tuple[object, ...]]]:
    """Everything in every table."""
    with store.read() as cursor:
        return {name: cursor.execute(f"FROM {name} ORDER BY ALL").fetchall() for name in TABLES}


def test_a_commit_that_fails_leaves_nothing() -> None:
    """A failure in the last statement undoes rows, books and projections, on disk and in memory."""
    with Store.open(MEMORY, projections=(*PROJECTIONS, BROKEN_AT_13)) as store:
        store.submit(batch(span(1, 10))).result()
        before, books = contents(store), store.accounts()
        future = store.submit(batch(span(11, 20)))

        with pytest.raises(StoreBroken, match="injected"):
            future.result()

        assert before == contents(store)
        assert books == store.accounts()


def test_the_rows_of_a_failed_commit_can_come_again() -> None:
    """A seq that was refused is not taken for stored when it comes a second time."""
    with Store.open(MEMORY, projections=(*PROJECTIONS, BROKEN_AT_13)) as store:
        with pytest.raises(StoreBroken):
            store.submit(batch(span(11, 13))).result()

        assert Receipt(stored=2, duplicate=0) == store.submit(batch(span(11, 12))).result()


def test_one_bad_batch_harms_no_other() -> None:
    """Batches that happened to share a transaction with a bad one are stored all the same."""
    with Store.open(MEMORY, projections=(*PROJECTIONS, BROKEN_AT_13)) as store:
        futures = [store.submit(batch([seq])) for seq in span(1, 20)]
        bad = futures.pop(12)

        with pytest.raises(StoreBroken):
            bad.result()
        assert [Receipt(stored=1, duplicate=0)] * 19 == [future.result() for future in futures]
        assert store.statistics().failed == 1


def test_a_full_queue_refuses_and_forgets_nothing() -> None:
    """What does not fit is refused at once; what was accepted stays."""
    inbox = Inbox(capacity=2, capacity_bytes=1 << 30)
    accepted = [Delivery(batch([1])), Delivery(batch([2]))]
    for delivery in accepted:
        inbox.put_nowait(delivery)

    with pytest.raises(StoreFull):
        inbox.put_nowait(Delivery(batch([3])))
    assert (inbox.statistics().waiting, inbox.statistics().capacity, inbox.statistics().refused) == (2, 2, 1)
    assert accepted == inbox.take()


def test_memory_bounds_the_queue_too() -> None:
    """A second batch is refused once the first one fills the memory; a first one always fits."""
    inbox = Inbox(capacity=100, capacity_bytes=1)
    inbox.put_nowait(Delivery(batch([1])))

    with pytest.raises(StoreFull):
        inbox.put_nowait(Delivery(batch([2])))


def test_closing_writes_what_waits() -> None:
    """Batches accepted before a close are stored by it; later ones are refused."""
    store = Store.open(MEMORY)
    futures = [store.submit(batch([seq])) for seq in span(1, 50)]
    store.close()

    assert [Receipt(stored=1, duplicate=0)] * 50 == [future.result() for future in futures]
    with pytest.raises(StoreClosed):
        store.submit(batch([51]))
