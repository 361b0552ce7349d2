"""Promises of the Kafka source on a real broker: each record once, in whatever order and number they come."""

import threading
from contextlib import AbstractContextManager
from pathlib import Path

from kafka import TopicPartition
from kvtrail_collector.sources.kafka_monitor import SourceState
from kvtrail_collector.store import MEMORY, Store
from kvtrail_schema.errors import ChecksumMismatch

from tests.broker import admin, records_in
from tests.collector.frames import dropped, frame, span
from tests.collector.sources.topics import (
    Topic,
    next_offsets,
    producing,
    quarantined,
    reading,
    rows,
    stored,
    topic_on,
    wait_until,
)


def test_every_record_of_every_partition_is_stored(bootstrap: str) -> None:
    """What lies in the topic already and what comes later is stored, with the position that follows it."""
    with topic_on(bootstrap, 3) as topic, Store.open(MEMORY) as store:
        topic.put(frame(span(1, 100)), frame(span(101, 150)))
        with reading(topic, store):
            wait_until(lambda: stored(store) == 150, "stored records")
            topic.put(frame(span(1, 30), engine="other"), partition=2)
            wait_until(lambda: stored(store) == 180, "records that came later")

        assert rows(store) == (180, 180)
        assert next_offsets(store, topic) == {0: 2, 2: 1}


def test_a_second_start_reads_only_what_is_new(bootstrap: str, private_dir: Path) -> None:
    """A collector that starts again goes on where its store ends, and reads nothing twice."""
    path = str(private_dir / "events.duckdb")
    with topic_on(bootstrap) as topic:
        topic.put(*(frame(span(1 + 10 * n, 10 + 10 * n)) for n in range(5)))
        with Store.open(path) as store, reading(topic, store):
            wait_until(lambda: stored(store) == 50, "first half")
        topic.put(frame(span(51, 60)))
        with Store.open(path) as store, reading(topic, store) as source:
            wait_until(lambda: stored(store) == 60, "second half")

            assert source.monitor.statistics().records == 1
            assert rows(store) == (60, 60)


def test_batches_in_any_order_twice_and_overlapping(bootstrap: str) -> None:
    """A spool that is replayed after newer batches, a retry and a batch cut anew leave each seq once, and no gap."""
    with topic_on(bootstrap) as topic, Store.open(MEMORY) as store:
        topic.put(frame(span(41, 60)), frame(span(1, 20)), frame(span(1, 20)), frame(span(11, 45)), frame(span(41, 60)))
        with reading(topic, store):
            wait_until(lambda: next_offsets(store, topic) == {0: 5}, "five records")
        (account,) = store.accounts().values()

        assert rows(store) == (60, 60)
        assert list(account.stored) == [(1, 60)]


def test_drops_and_heartbeats_arrive_too(bootstrap: str) -> None:
    """A frame without rows moves the books as it does by HTTP."""
    with topic_on(bootstrap) as topic, Store.open(MEMORY) as store:
        topic.put(frame([], produced=9, drops=(dropped(1, 9),)))
        with reading(topic, store):
            wait_until(store.accounts, "stream")
        (account,) = store.accounts().values()

        assert (9, (dropped(1, 9),)) == (account.marks.produced, account.drops)


def _roomy(bootstrap: str) -> AbstractContextManager[Topic]:
    """A topic that takes larger records than the source does."""
    return topic_on(bootstrap, max_message_bytes="8000000")


def test_poison_is_put_aside_and_passed(bootstrap: str) -> None:
    """Records that cannot be read lie in quarantine with their place and reason, and in the dead-letter topic; no good
    record around them is lost.
    """
    good = frame(span(1, 10))
    torn = good[:-1] + bytes([good[-1] ^ 1])
    with _roomy(bootstrap) as topic, _roomy(bootstrap) as dead, Store.open(MEMORY) as store:
        topic.put(good, b"not a batch", torn, None, frame(span(11, 20)), bytes(2 << 20), frame(span(21, 25)))
        with reading(topic, store, dead_letters=dead.name) as source:
            wait_until(lambda: next_offsets(store, topic) == {0: 7}, "seven records")
            kept = quarantined(store)
            letters = records_in(bootstrap, dead.name)

            assert source.monitor.statistics().quarantined == 4
        assert rows(store) == (25, 25)
        assert [(0, 1, 11), (0, 2, len(torn)), (0, 3, 0), (0, 5, 2 << 20)] == [row[:3] for row in kept]
        assert ChecksumMismatch.__name__ in str(kept[1][3])
        assert [b"not a batch", torn, None, bytes(2 << 20)] == [letter.value for letter in letters]
        assert [b"1", b"2", b"3", b"5"] == [dict(letter.headers)["offset"] for letter in letters]
        assert b"without a value" in dict(letters[2].headers)["reason"]


def test_a_dead_letter_topic_that_is_not_there_stops_nothing(bootstrap: str) -> None:
    """The table has what the topic does not take, and the failure is counted."""
    with topic_on(bootstrap) as topic, Store.open(MEMORY) as store:
        topic.put(b"not a batch", b"nor this", frame(span(1, 5)))
        with reading(topic, store, dead_letters="kvtrail-test-nobody-made-me") as source:
            wait_until(lambda: stored(store) == 5, "the good record")

            assert source.monitor.statistics().dead_letters_failed == 2
        assert len(quarantined(store)) == 2


def test_new_partitions_are_read(bootstrap: str) -> None:
    """A topic that grows is read whole, without a restart."""
    with topic_on(bootstrap) as topic, Store.open(MEMORY) as store:
        topic.put(frame(span(1, 5)))
        with reading(topic, store):
            wait_until(lambda: stored(store) == 5, "the first partition")
            with admin(bootstrap) as client:
                client.create_partitions({topic.name: 3})
            with producing(bootstrap, topic.name) as grown:  # a producer that learns of the topic anew
                grown.put(frame(span(1, 5), engine="other"), partition=2)
            wait_until(lambda: stored(store) == 10, "the new partition")

        assert next_offsets(store, topic) == {0: 1, 2: 1}


def test_what_retention_took_is_told_and_counted(bootstrap: str, private_dir: Path) -> None:
    """Records that went before they were read are a number by partition, and reading goes on after them."""
    path = str(private_dir / "events.duckdb")
    with topic_on(bootstrap) as topic:
        topic.put(frame(span(1, 10)))
        with Store.open(path) as store, reading(topic, store):
            wait_until(lambda: stored(store) == 10, "the first record")
        topic.put(frame(span(11, 20)), frame(span(21, 30)), frame(span(31, 40)))
        with admin(bootstrap) as client:
            client.delete_records({TopicPartition(topic.name, 0): 3})
        with Store.open(path) as store, reading(topic, store):
            wait_until(lambda: stored(store) == 20, "the record after the gap")
            (at,) = store.positions().values()

            assert (4, 2) == (at.next_offset, at.expired)
            assert rows(store) == (20, 20)


def wait_for(event: threading.Event) -> None:
    """Hold the writer up until an event comes."""
    event.wait(20)


def test_a_full_store_pauses_reading(bootstrap: str) -> None:
    """While the store takes no more, nothing is lost and nothing piles up; then reading goes on by itself."""
    with topic_on(bootstrap) as topic, Store.open(MEMORY, queue_batches=2) as store:
        topic.put(*(frame(span(1 + 100 * n, 100 + 100 * n)) for n in range(30)))
        release = threading.Event()
        held = store.run(lambda _: wait_for(release))
        with reading(topic, store) as source:
            wait_until(lambda: source.monitor.statistics().state is SourceState.PAUSED, "pause")

            assert stored(store) == 0
            release.set()
            wait_until(lambda: stored(store) == 3000, "all records")
            wait_until(lambda: source.monitor.statistics().state is SourceState.READING, "end of the pause")
        held.result()

        assert rows(store) == (3000, 3000)
