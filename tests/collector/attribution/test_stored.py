"""A spike is explained from kept ledgers and the rows of its windows as it is from all events."""

from kvtrail_collector.attribution import attribute
from kvtrail_collector.ledger_keeper import LedgerKeeper
from kvtrail_collector.questions.attribution import attribute_stored
from kvtrail_collector.questions.rows import event_rows, streams
from kvtrail_collector.testing import memory_store
from kvtrail_schema.clock import SystemClock

from tests.collector.attribution.synthetic import Run
from tests.collector.frames import events_batch


def test_stored_is_what_events_say(slow_run: Run) -> None:
    """Windows, components with their intervals, blame, exemplars and verdicts."""
    with memory_store() as store:
        store.submit(events_batch(slow_run.numbered())).result()
        LedgerKeeper(store, SystemClock()).run_once()
        with store.read() as cursor:
            known = streams(cursor)
            stored, everything = attribute_stored(cursor, known), attribute(event_rows(cursor, known))

    assert everything.verdicts
    assert everything == stored
