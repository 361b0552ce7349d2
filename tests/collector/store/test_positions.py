"""Promises of positions: they move with the rows or not at all, in a chain, and survive the process."""

from pathlib import Path
from string import Template

import pytest
from kvtrail_collector.errors import PositionMoved, StoreBroken
from kvtrail_collector.projections import PROJECTIONS, Projection
from kvtrail_collector.store import MEMORY, Place, Position, Quarantined, Reached, Store
from kvtrail_collector.store.positions import advance

from tests.collector.frames import batch, span

HERE, THERE = Place("kafka:events", 0), Place("kafka:events", 1)
# Fails inside the commit whenever seq 13 is among the rows.
BROKEN_AT_13 = Projection("requests", "req", Template("SELECT error('injected') FROM $source WHERE seq = 13"))
BROKEN = Quarantined(1, "torn", None, 3, b"abc", "kafka:events", 0, 4)


def step(after: int, next_offset: int, place: Place = HERE, expired: int = 0) -> Position:
    """A step of a chain."""
    return Position(place, after, next_offset, expired)


def test_rows_and_position_are_stored_together(private_dir: Path) -> None:
    """Whoever opens the file again finds the position of the rows that it finds."""
    path = str(private_dir / "events.duckdb")
    with Store.open(path) as store:
        store.submit(batch(span(1, 3)), step(0, 5)).result()
        store.submit(batch(span(4, 6)), step(5, 6, expired=2)).result()
        store.submit(batch(span(1, 3), epoch=8), step(0, 9, THERE)).result()
    with Store.open(path) as store:
        positions = store.positions()

    assert {HERE: Reached(6, 2), THERE: Reached(9, 0)} == positions


def test_a_step_that_does_not_follow_is_refused_whole() -> None:
    """A batch that comes before its time, or a second time, leaves neither rows nor position."""
    with Store.open(MEMORY) as store:
        with pytest.raises(PositionMoved):
            store.submit(batch(span(1, 3)), step(1, 2)).result()
        store.submit(batch(span(1, 3)), step(0, 1)).result()
        with pytest.raises(PositionMoved):
            store.submit(batch(span(4, 5)), step(0, 1)).result()

        assert store.positions() == {HERE: Reached(1, 0)}
        assert [account.stored.size for account in store.accounts().values()] == [3]


def test_nothing_overtakes_a_batch_that_failed() -> None:
    """A later batch of the partition is refused, so that reading again from the stored offset finds the failed one."""
    with Store.open(MEMORY, projections=(*PROJECTIONS, BROKEN_AT_13)) as store:
        bad = store.submit(batch(span(13, 13)), step(0, 1))
        after = store.submit(batch(span(14, 15)), step(1, 2))
        elsewhere = store.submit(batch(span(1, 2), epoch=8), step(0, 1, THERE))
        elsewhere.result()
        with pytest.raises(StoreBroken):
            bad.result()
        with pytest.raises(PositionMoved):
            after.result()

        assert store.positions() == {THERE: Reached(1, 0)}


def test_a_record_in_quarantine_is_passed() -> None:
    """What could not be read is kept and passed in one transaction, in its place of the chain."""
    with Store.open(MEMORY) as store:
        store.submit(batch(span(1, 3)), step(0, 4))
        store.quarantine(BROKEN, step(4, 5)).result()
        with pytest.raises(PositionMoved):
            store.quarantine(BROKEN, step(4, 5)).result()
        with store.read() as cursor:
            rows = cursor.execute("SELECT source, partition, record_offset FROM quarantine").fetchall()

        assert rows == [("kafka:events", 0, 4)]
        assert store.positions() == {HERE: Reached(5, 0)}


def test_steps_of_one_transaction_follow_each_other() -> None:
    """A group is folded in its order; batches without a source are no steps."""
    changed = advance({HERE: Reached(3, 1)}, [None, step(3, 4, expired=2), step(0, 1, THERE), step(4, 7)])

    assert {HERE: Reached(7, 3), THERE: Reached(1, 0)} == changed
