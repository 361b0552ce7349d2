"""Promises of the watch on a store: what is broken is told within a look, is kept, and never claims more than was seen."""

import time
from collections.abc import Sequence

import pytest
from kvtrail_collector.invariants import watch as watching
from kvtrail_collector.invariants.watch import InvariantWatch
from kvtrail_collector.store import Store
from kvtrail_collector.testing import memory_store, running_collector
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.events import Event
from kvtrail_schema.jsonl import read_lines

from tests.collector.frames import events_batch

RELEASED = [
    '{"seq": 1, "t_ms": 1, "kind": "block_created", "block": "b", "tier": "gpu", "slot": 3}',
    '{"seq": 2, "t_ms": 5, "kind": "evicted", "block": "b", "tier": "gpu", "slot": 3, "reason": "capacity"}',
    '{"seq": 3, "t_ms": 9, "kind": "attention_read", "req": 1, "block": "b", "tier": "gpu", "slot": 3}',
    '{"seq": 4, "t_ms": 9, "kind": "attention_read", "req": 2, "block": "b", "tier": "gpu", "slot": 3}',
]
CAPPED = '{"seq": %d, "t_ms": %d, "kind": "capacity_sampled", "tier": "nvme", "capacity_bytes": 10, "used_bytes": 20}'
QUESTION = "SELECT code, tier, cases, first_seq, seqs_not_looked_at FROM verdicts ORDER BY code"


def events(lines: Sequence[str]) -> list[Event]:
    """The events of some lines."""
    return [line.event for line in read_lines(lines)]


def store_lines(store: Store, lines: Sequence[str]) -> None:
    """Commit some events."""
    store.submit(events_batch(events(lines))).result()


def begun(store: Store) -> InvariantWatch:
    """A watch that hears of commits, and looks when it is told to."""
    watch = InvariantWatch(store, SystemClock(), {})
    watch.begin()
    return watch


def kept(store: Store) -> list[tuple[object, ...]]:
    """What the view has."""
    with store.read() as cursor:
        return cursor.execute(QUESTION).fetchall()


def codes(watch: InvariantWatch) -> dict[str, int]:
    """How often each code was found, of all streams."""
    return {one.code: one.cases for all_ in watch.verdicts().values() for one in all_.values()}


def test_what_is_broken_can_be_asked_for_in_sql() -> None:
    """Two looks, two commits: the reads of a copy that is gone, with the tier, how many, and which was the first."""
    with memory_store() as store:
        watch = begun(store)
        store_lines(store, RELEASED[:2])
        watch.look()
        store_lines(store, RELEASED[2:])
        watch.look(is_last=True)

        assert [("READ_AFTER_RELEASE", "gpu", 2, 3, 0)] == kept(store)


def test_alerts_hear_of_it() -> None:
    """Rules that name a verdict get it with the next look, for as long as it is recent."""
    with memory_store() as store:
        watch = begun(store)
        store_lines(store, [CAPPED % (1, 1)])
        watch.look()
        now = watch.recent()
        store_lines(store, ['{"seq": 2, "t_ms": 500000, "kind": "agent_heartbeat", "reason": "recorder", "produced": 2}'])
        watch.look()

        assert {("verdict:CAP_EXCEEDED", "engine"): 1.0} == now
        assert {} == watch.recent()


def test_it_goes_on_after_a_restart() -> None:
    """What was found stays and is added to; what was before is not known, so that nothing is said that follows from absence."""
    with memory_store() as store:
        first = begun(store)
        store_lines(store, [CAPPED % (1, 1)])
        first.look(is_last=True)
        second = begun(store)
        store_lines(store, [CAPPED % (2, 2), *(line.replace('"seq": ', '"seq": 1') for line in RELEASED)])
        second.look(is_last=True)

        assert [("CAP_EXCEEDED", "nvme", 2, 1)] == [row[:4] for row in kept(store)]


def test_what_was_not_looked_at_makes_it_less_sure() -> None:
    """Where as many events are missing as are broken, they may have been what is missing; nothing is claimed, and said so."""
    with memory_store() as store:
        watch = begun(store)
        store_lines(store, RELEASED[:2])
        store_lines(
            store, ['{"seq": 9, "t_ms": 9, "kind": "attention_read", "req": 1, "block": "b", "tier": "gpu", "slot": 3}']
        )
        watch.look(is_last=True)

        assert {} == codes(watch)
        with store.read() as cursor:
            assert [(6,)] == cursor.execute('SELECT missed FROM stream_watches WHERE len("unknown") > 5').fetchall()


def test_what_comes_late_is_left_to_the_rules() -> None:
    """Rows behind others that were looked at change nothing here."""
    with memory_store() as store:
        watch = begun(store)
        store_lines(store, RELEASED[3:])
        watch.look()
        store_lines(store, RELEASED[:3])
        watch.look()

        assert {} == codes(watch)


def test_streams_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one heard of longest ago makes room, and what was found in it is not forgotten."""
    monkeypatch.setattr(watching, "MOST_STREAMS", 2)
    with memory_store() as store:
        watch = begun(store)
        for epoch in (1, 2, 3):
            store.submit(events_batch(events([CAPPED % (1, 1)]), epoch=epoch)).result()
            watch.look()

        assert 2 == watch.statistics().streams
        assert 3 == len(watch.verdicts())


def test_the_thread_keeps_what_it_found() -> None:
    """As a collector runs it: at its end everything is written down."""
    with memory_store() as store:
        with InvariantWatch(store, SystemClock(), {}):
            store_lines(store, [CAPPED % (1, 1)])

        assert [("CAP_EXCEEDED", "nvme", 1, 1, 0)] == kept(store)


def test_a_collector_watches() -> None:
    """Whoever runs a collector has the watch, without a setting: what is broken can be asked for while it runs."""
    with running_collector() as collector:
        store_lines(collector.store, RELEASED)
        until = time.monotonic() + 60
        while not kept(collector.store) and time.monotonic() < until:
            time.sleep(0.2)

        assert [("READ_AFTER_RELEASE", "gpu", 2, 3, 0)] == kept(collector.store)
