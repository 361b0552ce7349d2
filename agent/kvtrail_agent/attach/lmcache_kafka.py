"""Follows LMCache's cache events in a Kafka topic (`lmcache-cache-events`), all its partitions, from now on or from the start.

Reads beside LMCache's own coordinator: it joins no group and commits nothing. What a restart of this process reads again is
known by its numbers only within one run; so from the start means everything that the topic still has, once more.
"""

import logging
import threading
from typing import Any, Final

from kafka import KafkaConsumer, TopicPartition, errors
from kvtrail_schema.kafka_client import make_client

from kvtrail_agent.attach.live_rows import LiveRows
from kvtrail_agent.errors import ForeignInvalid, TransportUnavailable
from kvtrail_agent.importers.decoded import Bad, Decoded
from kvtrail_agent.importers.lmcache_batches import LmcacheBatches
from kvtrail_agent.importers.records import json_of

LOG: Final = logging.getLogger("kvtrail")
DEFAULT_TOPIC: Final = "lmcache-cache-events"
_POLL_MS: Final = 200
_ANSWER_MS: Final = 5_000
_LONGEST_PAUSE_S: Final = 5.0
_FIRST_PAUSE_S: Final = 0.2


class LmcacheTopic:
    """One topic. `run` returns when `stop` is set; brokers that go away are tried again for as long as it runs."""

    def __init__(self, bootstrap: str, topic: str, options: dict[str, object], *, from_start: bool) -> None:
        self._topic = topic
        self._from_start = from_start
        self._settings: dict[str, Any] = {
            **options,
            "bootstrap_servers": bootstrap,
            "bootstrap_timeout_ms": _ANSWER_MS,
            "enable_auto_commit": False,
            "group_id": None,
            "client_id": "kvtrail-lmcache",
        }
        self._next: dict[TopicPartition, int] = {}

    def run(self, decoder: LmcacheBatches, rows: LiveRows, stop: threading.Event) -> None:
        """Read until told to stop; then end the recorders."""
        pause_s = _FIRST_PAUSE_S
        try:
            while not stop.is_set():
                try:
                    self._follow(decoder, rows, stop)
                    pause_s = _FIRST_PAUSE_S
                except TransportUnavailable as error:
                    LOG.warning("kvtrail: %s; tried again", error)
                    stop.wait(pause_s)
                    pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
        finally:
            rows.close()

    def _follow(self, decoder: LmcacheBatches, rows: LiveRows, stop: threading.Event) -> None:
        """Read while the connection holds.

        Raises:
            TransportUnavailable: no broker answers, or the topic is not there.
        """
        try:
            consumer = make_client(KafkaConsumer, self._settings)
            try:
                self._assign(consumer)
                while not stop.is_set():
                    for partition, records in consumer.poll(timeout_ms=_POLL_MS).items():
                        for record in records:
                            rows.write(self._decoded(decoder, record.value or b""))
                            self._next[partition] = record.offset + 1
            finally:
                consumer.close()
        except (errors.KafkaError, OSError) as error:
            raise TransportUnavailable(f"topic {self._topic}: {type(error).__name__}: {error}") from error

    def _assign(self, consumer: Any) -> None:
        """All partitions, each from where this run is in it."""
        numbers = consumer.partitions_for_topic(self._topic)
        if not numbers:
            raise TransportUnavailable(f"topic {self._topic} is not there: LMCache makes it with its first event")
        partitions = [TopicPartition(self._topic, number) for number in sorted(numbers)]
        starts = consumer.beginning_offsets(partitions) if self._from_start else consumer.end_offsets(partitions)
        consumer.assign(partitions)
        for partition in partitions:
            self._next.setdefault(partition, starts[partition])
            consumer.seek(partition, self._next[partition])

    @staticmethod
    def _decoded(decoder: LmcacheBatches, raw: bytes) -> Decoded:
        """One record; one that is no JSON is counted and passed over."""
        try:
            return decoder.decode(json_of(raw))
        except ForeignInvalid as error:
            return Decoded(bad=[Bad("", str(error))])
