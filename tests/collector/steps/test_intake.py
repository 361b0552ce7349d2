"""Promises of the intake: in order, each once, and what the store refuses is put aside when it comes by again."""

import time
from string import Template

import pytest
from kvtrail_collector.errors import StoreBroken, StoreFull
from kvtrail_collector.projections import PROJECTIONS, Projection
from kvtrail_collector.steps.intake import DeadLetter, Intake, Progress, SourceRecord
from kvtrail_collector.store import MEMORY, Place, Reached, Store
from kvtrail_schema.batch import Limits
from kvtrail_schema.clock import SystemClock

from tests.collector.frames import frame, span

SOURCE = "kafka:events"
# A value that a column cannot hold, and an error that is nobody's fault, whenever seq 13 is among the rows.
UNFIT_AT_13 = Projection("requests", "req", Template("SELECT CAST('x' AS INTEGER) FROM $source WHERE seq = 13"))
BROKEN = Projection("requests", "req", Template("SELECT * FROM nowhere_$source"))


def intake(store: Store, letters: list[DeadLetter] | None = None) -> Intake:
    """An intake that has begun."""
    kept = letters if letters is not None else []
    made = Intake(store, SOURCE, limits=Limits(), clock=SystemClock(), put_aside=kept.append)
    made.begin()
    return made


def record(offset: int, first: int, last: int) -> SourceRecord:
    """A record with these seqs."""
    return SourceRecord(0, offset, frame(span(first, last)))


def poll_until_told(steps: Intake) -> Progress:
    """Look until there is something to say."""
    while (progress := steps.poll()) is Progress.GOING:
        time.sleep(0.001)
    return progress


def reached(store: Store) -> int:
    """The stored position of partition 0."""
    return store.positions().get(Place(SOURCE, 0), Reached(0, 0)).next_offset


def test_offsets_may_have_holes() -> None:
    """A topic that was compacted, or holds marks of transactions, is read like any other."""
    with Store.open(MEMORY) as store:
        steps = intake(store)
        steps.submit(record(4, 1, 3))
        steps.submit(record(9, 4, 6))
        steps.join(10)

        assert reached(store) == 10


def test_what_the_store_refuses_for_good_is_put_aside_on_the_second_pass() -> None:
    """A batch that reads well and holds a value for no column is no reason to stop: nothing overtakes it, it is put aside
    when it comes again, and what follows is stored.
    """
    letters: list[DeadLetter] = []
    records = [record(0, 1, 12), record(1, 13, 13), record(2, 14, 20)]
    with Store.open(MEMORY, projections=(*PROJECTIONS, UNFIT_AT_13)) as store:
        steps = intake(store, letters)
        for one in records:
            steps.submit(one)
        steps.join(10)

        assert reached(store) == 1
        assert {0: 1} == steps.begin()
        for one in records[1:]:
            steps.submit(one)
        steps.join(10)

        assert reached(store) == 3
    assert [records[1]] == [letter.record for letter in letters]


def test_polling_says_to_read_again() -> None:
    """The thread of the source learns of a refusal without waiting for it."""
    with Store.open(MEMORY, projections=(*PROJECTIONS, UNFIT_AT_13)) as store:
        steps = intake(store)
        steps.submit(record(0, 13, 13))

        assert poll_until_told(steps) is Progress.REREAD


def test_an_error_of_the_store_is_no_fault_of_the_record() -> None:
    """A store that cannot write says so, and nothing is put aside for it."""
    letters: list[DeadLetter] = []
    with Store.open(MEMORY, projections=(*PROJECTIONS, BROKEN)) as store:
        steps = intake(store, letters)
        steps.submit(record(0, 1, 3))
        with pytest.raises(StoreBroken):
            poll_until_told(steps)

        assert reached(store) == 0
    assert letters == []


def test_a_full_store_takes_the_record_later() -> None:
    """A refusal for now leaves the chain as it was: the same record fits when there is room."""
    with Store.open(MEMORY, queue_batches=1) as store:
        steps = intake(store)
        taken = 0
        for number in range(500):
            try:
                steps.submit(record(number, 1 + 3 * number, 3 + 3 * number))
            except StoreFull:
                break
            taken += 1
        steps.join(10)
        steps.submit(record(taken, 1 + 3 * taken, 3 + 3 * taken))
        steps.join(10)

        assert reached(store) == taken + 1


def test_expired_records_are_counted_with_the_next_one() -> None:
    """What retention took stands in the books once the record after it is stored, and only once."""
    with Store.open(MEMORY) as store:
        steps = intake(store)
        steps.expired(0, 7)
        steps.submit(record(7, 1, 3))
        steps.submit(record(8, 4, 6))
        steps.join(10)

        assert store.positions() == {Place(SOURCE, 0): Reached(9, 7)}
