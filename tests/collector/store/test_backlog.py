"""Promises of the backlog: groups of exactly the rows that are wanted, and a sender is told when all of its rows are stored."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_collector.store import Receipt, Store
from kvtrail_collector.store import writer as writing
from kvtrail_collector.store.backlog import Backlog, Share
from kvtrail_collector.store.hot import Spread
from kvtrail_collector.store.inbox import Delivery, Errand, Inbox, Outcome, Task
from kvtrail_collector.testing import memory_store

from tests.collector.frames import batch, span


def deliveries(sizes: list[int]) -> list[Delivery]:
    """Batches of so many rows, one after another."""
    made, first = [], 1
    for size in sizes:
        made.append(Delivery(batch(span(first, first + size - 1))))
        first += size
    return made


def backlog_of(*made: Delivery) -> Backlog:
    """A backlog with some batches."""
    backlog = Backlog()
    for delivery in made:
        backlog.add(delivery)
    return backlog


def common_rows(group: list[Share]) -> int:
    """The rows of a group that fill row groups."""
    return sum(Spread(share.incoming.batch.table).common for share in group)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(1, 12))
def test_groups_have_the_rows_that_are_wanted_and_lose_none(sizes: list[int], rows: int) -> None:
    """Whatever the sizes, every group but the last has the common rows wanted, and all rows leave once, in order."""
    backlog = backlog_of(*deliveries(sizes))
    groups, seqs = [], []
    while backlog:
        group = backlog.take(rows)
        groups.append(common_rows(group))
        seqs += [seq for share in group for seq in share.incoming.batch.table["seq"].to_pylist()]

    assert seqs == list(span(1, sum(sizes)))
    assert all(size == rows for size in groups[:-1])
    assert backlog.rows == 0


def test_a_sender_is_told_after_its_last_row() -> None:
    """A batch that was cut in two is acknowledged with the second part, and the receipt counts both."""
    (delivery,) = deliveries([10])
    backlog = backlog_of(delivery)
    (first,) = backlog.take(4)
    first.settle(Receipt(stored=3, duplicate=1))

    assert (False, None) == (delivery.done.done(), first.position)

    (second,) = backlog.take(100)
    second.settle(Receipt(stored=6, duplicate=0))

    assert Receipt(stored=9, duplicate=1) == delivery.done.result(0)


def test_a_batch_that_nobody_waits_for_is_left_out() -> None:
    """A sender that gave up before its batch was taken will send it again; it is not stored behind its back."""
    (delivery,) = deliveries([10])
    delivery.done.cancel()

    assert not backlog_of(delivery)


def test_waiting_for_more_ends_with_enough_rows_or_an_errand_or_patience() -> None:
    """A writer that waits for a full group wakes for it, wakes for an errand, and else waits no longer than it may."""
    inbox = Inbox(capacity=10, capacity_bytes=1 << 30)
    delivery = Delivery(batch(span(1, 5)))
    inbox.put_nowait(delivery)

    assert len(inbox.take_more(delivery.common_rows, patience_s=60)) == 1

    inbox.put_nowait(Errand(lambda *_: Outcome({})))

    assert len(inbox.take_more(5, patience_s=60)) == 1
    assert inbox.take_more(5, patience_s=0.01) == []


def test_a_busy_store_commits_whole_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a backlog every commit but the last is a multiple of the group; all rows are there once, in the end."""
    monkeypatch.setattr(writing, "ROW_GROUP", 64)
    monkeypatch.setattr(writing, "GROUP_ROWS", 128)
    sizes: list[int] = []
    take = Backlog.take

    def counted(backlog: Backlog, rows: int) -> list[Share]:
        """Take, and note the size of the group."""
        group = take(backlog, rows)
        sizes.append(common_rows(group))
        return group

    monkeypatch.setattr(Backlog, "take", counted)
    with memory_store() as store:
        hold = hold_writer(store)
        futures = [store.submit(batch(span(1 + 56 * number, 56 + 56 * number))) for number in range(10)]
        hold.set()

        assert [Receipt(stored=56, duplicate=0)] * 10 == [future.result() for future in futures]
        assert sizes == [128, 128, 128, 64, 42]


def hold_writer(store: Store) -> threading.Event:
    """Keep the writer in an errand until the event is set, so that batches gather."""
    hold, begun = threading.Event(), threading.Event()

    def wait(_: object) -> None:
        begun.set()
        hold.wait(30)

    store.run(wait)
    begun.wait(30)
    return hold


def test_a_trickle_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is not busy waits for no second batch before it commits the first."""
    waits: list[float] = []
    take_more = Inbox.take_more

    def noted(inbox: Inbox, enough_rows: int, patience_s: float) -> list[Task]:
        """Wait for more, and note it."""
        waits.append(patience_s)
        return take_more(inbox, enough_rows, patience_s)

    monkeypatch.setattr(Inbox, "take_more", noted)
    with memory_store() as store:
        for first in range(1, 101, 10):
            store.submit(batch(span(first, first + 9))).result()

        assert waits == []
