"""The thread `kvtrail-kafka-source`: reads every partition of one topic, from where the store says that it is.

Positions live in the store, in the transaction of the rows, and nowhere else: no group, no offsets at the brokers. So a
collector that was killed reads again from what it has, and stores each record once. A full store pauses the partitions;
lost brokers are tried again for ever; neither is fatal, and both are said.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from kafka import KafkaConsumer, TopicPartition, errors
from kvtrail_schema.batch import Limits
from kvtrail_schema.clock import Clock
from kvtrail_schema.kafka_client import make_client

from kvtrail_collector.errors import CollectorError, SourceUnavailable, StoreClosed, StoreFull, StoreUnusable
from kvtrail_collector.sources.kafka_dead_letters import DeadLetterTopic
from kvtrail_collector.sources.kafka_errors import map_kafka_errors
from kvtrail_collector.sources.kafka_monitor import KafkaMonitor, SourceState
from kvtrail_collector.sources.kafka_settings import KafkaSettings
from kvtrail_collector.steps.intake import DeadLetter, Intake, Progress, SourceRecord
from kvtrail_collector.store import Store

_LOG: Final = logging.getLogger(__name__)
_LOOK_NS: Final = 1_000_000_000
_POLL_MS: Final = 100
_ANSWER_MS: Final = 3_000
_RECORDS: Final = 64
_FULL_WAIT_S: Final = 0.02
_JOIN_S: Final = 60.0
_SHORTEST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 5.0


class KafkaSource:
    """Owns its thread from `start` to `stop`; its monitor may be asked from any thread."""

    def __init__(self, settings: KafkaSettings, store: Store, *, limits: Limits, clock: Clock) -> None:
        self.monitor: Final = KafkaMonitor()
        self._settings = settings
        self._store = store
        self._clock = clock
        self._dead_letters = _dead_letters(settings, clock, self.monitor)
        self._intake = Intake(store, settings.source, limits=limits, clock=clock, put_aside=self._put_aside)
        self._waiting: deque[SourceRecord] = deque()  # read, and not yet taken by the store; one poll's worth at most
        self._looked_ns = 0
        self._partitions: frozenset[int] = frozenset()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kvtrail-kafka-source", daemon=True)

    def start(self) -> None:
        """Begin to read. Returns at once, whether or not a broker is there."""
        self._thread.start()

    def stop(self) -> None:
        """Read no more, and wait for the thread to end: a few seconds. What was read and not stored will be read again."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        """The life of the thread: one connection after the other, with pauses that double."""
        pause_s = _SHORTEST_PAUSE_S
        while not self._stop.is_set():
            records = self.monitor.statistics().records
            try:
                self._read_until_stopped()
            except (StoreClosed, StoreUnusable) as error:
                _LOG.error("%s: reads no more: %s", self._settings.source, error)
                break
            except CollectorError as error:
                self._say_lost(error)
            except Exception:  # noqa: BLE001 - whatever it is, events must not stop coming in for it; stored positions are whole
                _LOG.exception("%s: an error that should not be; reading begins again", self._settings.source)
                self.monitor.enter(SourceState.LOST, "an error that should not be: see the collector's log")
            pause_s = _SHORTEST_PAUSE_S if self.monitor.statistics().records > records else min(2 * pause_s, _LONGEST_PAUSE_S)
            self._stop.wait(pause_s)
        if self._dead_letters is not None:
            self._dead_letters.close()
        self.monitor.enter(SourceState.STOPPED)

    def _say_lost(self, error: CollectorError) -> None:
        """Say once what holds the source up, in the log and to whoever asks."""
        if self.monitor.statistics().state is not SourceState.LOST:
            _LOG.warning("%s", error)
        self.monitor.enter(SourceState.LOST, f"{error.trouble.where}: {error.trouble.what}")

    def _read_until_stopped(self) -> None:
        """One connection, until it is lost or nobody wants it any more."""
        with map_kafka_errors(self._settings.where):
            consumer = make_client(KafkaConsumer, self._settings.consumer())
        try:
            self._place(consumer)
            while not self._stop.is_set():
                self._step(consumer)
        finally:
            consumer.close(autocommit=False, timeout_ms=1_000)

    def _step(self, consumer: KafkaConsumer) -> None:
        """One turn: look around when it is time, see what was stored, take what is new."""
        if self._clock.monotonic_ns() - self._looked_ns >= _LOOK_NS:
            self._look_around(consumer)
        if self._intake.poll() is Progress.REREAD:
            self.monitor.count(rereads=1)
            self._place(consumer)
        if self._waiting:
            self._hand_on(consumer)
        else:
            self._take(consumer)

    def _place(self, consumer: KafkaConsumer) -> None:
        """Assign all partitions and go to the stored offsets. What is under way is answered first.

        Raises:
            SourceUnavailable: there is no such topic, or nobody tells of it.
        """
        self._intake.join(_JOIN_S)
        self._waiting.clear()
        stored = self._intake.begin()
        with map_kafka_errors(self._settings.where):
            self._partitions = frozenset(consumer.partitions_for_topic(self._settings.topic))
            if not self._partitions:
                raise SourceUnavailable(
                    "there is no such topic", where=self._settings.where, do="make it: kvtrail doctor --create-topic"
                )
            places = self._places()
            consumer.assign(places)
            begins = consumer.beginning_offsets(places, timeout_ms=_ANSWER_MS)
            ends = consumer.end_offsets(places, timeout_ms=_ANSWER_MS)
            for place in places:
                offset = self._begin_at(place.partition, stored.get(place.partition), begins[place], ends[place])
                consumer.seek(place, offset)
            consumer.resume(*places)
        self._say_lag(ends)
        self.monitor.enter(SourceState.READING)

    def _begin_at(self, partition: int, stored: int | None, begin: int, end: int) -> int:
        """Where to read on: at the stored offset if it is still there; what is not is said and counted, and never fatal."""
        if stored is None:
            return begin
        where = f"{self._settings.source}[{partition}]"
        if stored < begin:
            _LOG.warning("%s: retention took offsets %d to %d before they were read", where, stored, begin - 1)
            self._intake.expired(partition, begin - stored)
            return begin
        if stored > end:
            _LOG.warning("%s: the topic ends at %d, the store is at %d: it was made anew; reading it whole", where, end, stored)
            return begin
        return stored

    def _look_around(self, consumer: KafkaConsumer) -> None:
        """Ask the brokers for ends and partitions: whether they are there at all, how far behind we are, what is new."""
        self._looked_ns = self._clock.monotonic_ns()
        with map_kafka_errors(self._settings.where):
            known = frozenset(consumer.partitions_for_topic(self._settings.topic))
            ends = consumer.end_offsets(self._places(), timeout_ms=_ANSWER_MS)
        self._say_lag(ends)
        if known > self._partitions:
            _LOG.info("%s: new partitions: %s", self._settings.source, sorted(known - self._partitions))
            self._place(consumer)

    def _take(self, consumer: KafkaConsumer) -> None:
        """Read what the brokers have, and hand it on."""
        try:
            with map_kafka_errors(self._settings.where):
                taken = consumer.poll(timeout_ms=_POLL_MS, max_records=_RECORDS)
        except SourceUnavailable as error:
            if not isinstance(error.__cause__, errors.OffsetOutOfRangeError):
                raise
            self._place(consumer)  # retention overtook us
            return
        self._waiting.extend(
            SourceRecord(record.partition, record.offset, record.value) for records in taken.values() for record in records
        )
        self.monitor.count(records=len(self._waiting))
        self._hand_on(consumer)

    def _hand_on(self, consumer: KafkaConsumer) -> None:
        """Hand what was read to the store; where it takes no more, read no more until it does."""
        was_paused = self.monitor.statistics().state is SourceState.PAUSED
        try:
            while self._waiting:
                self._intake.submit(self._waiting[0])
                self._waiting.popleft()
        except StoreFull:
            if not was_paused:
                consumer.pause(*self._places())
                self.monitor.enter(SourceState.PAUSED)
            self._stop.wait(_FULL_WAIT_S)
            return
        if was_paused:
            consumer.resume(*self._places())
            self.monitor.enter(SourceState.READING)

    def _places(self) -> list[TopicPartition]:
        """Every partition, as the client names them."""
        return [TopicPartition(self._settings.topic, partition) for partition in sorted(self._partitions)]

    def _say_lag(self, ends: Mapping[TopicPartition, int]) -> None:
        """Say how many records of each partition are not stored."""
        stored = {
            place.partition: at.next_offset
            for place, at in self._store.positions().items()
            if place.source == self._settings.source
        }
        self.monitor.lag({place.partition: max(0, end - stored.get(place.partition, 0)) for place, end in ends.items()})

    def _put_aside(self, letter: DeadLetter) -> None:
        """A record went to quarantine."""
        self.monitor.count(quarantined=1)
        if self._dead_letters is not None:
            self._dead_letters.put(letter)


def _dead_letters(settings: KafkaSettings, clock: Clock, monitor: KafkaMonitor) -> DeadLetterTopic | None:
    """The dead-letter topic, where one is set."""
    if not settings.dead_letter_topic:
        return None
    shared: dict[str, Any] = settings.client()
    return DeadLetterTopic(
        settings.dead_letter_topic,
        shared,
        clock=clock,
        monitor=monitor,
        source=settings.source,
    )
