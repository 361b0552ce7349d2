"""Orders by a Kafka topic: the thread `kvtrail-degrade-topic` reads what comes in from now on, and asks the receiver of each.

A topic says nothing back, so what the engine did not come to is tried again here, in order, until the order is too old. Loads
the Kafka client.
"""

from __future__ import annotations

import logging
import threading
from http import HTTPStatus
from typing import Any, Final

from kafka import KafkaConsumer, TopicPartition
from kvtrail_schema.kafka_client import make_client

from kvtrail_agent.degrade.server import MOST_BYTES, Answer, Receive
from kvtrail_agent.errors import TransportUnavailable
from kvtrail_agent.transports.kafka import map_kafka_errors
from kvtrail_agent.transports.kafka_address import KafkaAddress

LOG: Final = logging.getLogger("kvtrail")
_POLL_MS: Final = 200
_ANSWER_MS: Final = 3_000
_AGAIN_S: Final = 0.5
_SHORTEST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 5.0
_RECORDS: Final = 16
_FETCH_BYTES: Final = 256 * 1024


class OrderTopic:
    """Reads every partition of one topic, without a group: each engine hears all of it, and takes what names it as its key.

    Where it reads is kept in memory alone: what was signed before this process began is refused as old anyway.
    """

    def __init__(self, address: KafkaAddress, engine: str, receive: Receive) -> None:
        self._address, self._key, self._receive = address, engine.encode(), receive
        self._next: dict[int, int] = {}  # the thread's own: by partition, where to read on
        self._stop = threading.Event()
        self.is_heard = threading.Event()
        """Set once what is sent from now on will be read."""
        self._thread = threading.Thread(target=self._run, name="kvtrail-degrade-topic", daemon=True)

    def start(self) -> None:
        """Begin to read. Returns at once, whether or not a broker is there."""
        self._thread.start()

    def close(self) -> None:
        """Read no more; blocks for the call that is under way, a few seconds at most."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        """One connection after the other, with pauses that double; lost brokers end nothing."""
        pause_s, is_told = _SHORTEST_PAUSE_S, False
        while not self._stop.is_set():
            try:
                self._read_until_stopped()
            except TransportUnavailable as error:
                was_heard = self.is_heard.is_set()
                self.is_heard.clear()
                if was_heard or not is_told:
                    LOG.warning("kvtrail: no order can be heard by topic, and it is tried again: %s", error)
                is_told = True
                pause_s = _SHORTEST_PAUSE_S if was_heard else min(2 * pause_s, _LONGEST_PAUSE_S)
            self._stop.wait(pause_s)

    def _read_until_stopped(self) -> None:
        """One connection.

        Raises:
            TransportUnavailable: it is lost.
        """
        with map_kafka_errors(str(self._address)):
            consumer = make_client(KafkaConsumer, self._settings())
            try:
                self._place(consumer)
                while not self._stop.is_set():
                    self._step(consumer)
            finally:
                consumer.close(autocommit=False, timeout_ms=1_000)

    def _place(self, consumer: KafkaConsumer) -> None:
        """Every partition, from where we were, or from its end.

        Raises:
            TransportUnavailable: there is no such topic.
        """
        partitions = consumer.partitions_for_topic(self._address.topic)
        if not partitions:
            message = f"{self._address}: there is no such topic"
            raise TransportUnavailable(message)
        places = [TopicPartition(self._address.topic, partition) for partition in sorted(partitions)]
        consumer.assign(places)
        begins = consumer.beginning_offsets(places, timeout_ms=_ANSWER_MS)
        ends = consumer.end_offsets(places, timeout_ms=_ANSWER_MS)
        for place in places:
            known = self._next.get(place.partition, ends[place])
            self._next[place.partition] = min(max(known, begins[place]), ends[place])
            consumer.seek(place, self._next[place.partition])
        self.is_heard.set()

    def _step(self, consumer: KafkaConsumer) -> None:
        """What has come in since."""
        for records in consumer.poll(timeout_ms=_POLL_MS, max_records=_RECORDS).values():
            for record in records:
                if record.key == self._key:
                    self._take(_headers(record), record.value or b"")
                self._next[record.partition] = record.offset + 1

    def _take(self, headers: dict[str, str], body: bytes) -> None:
        """One order, again and again while the engine does not come to it: the receiver ends that when the order is old."""
        body = body if len(body) <= MOST_BYTES else b""
        while self._answer(headers, body).status is HTTPStatus.SERVICE_UNAVAILABLE:
            if self._stop.wait(_AGAIN_S):
                return

    def _answer(self, headers: dict[str, str], body: bytes) -> Answer:
        """What the receiver says; a defect in an engine's controls ends no thread."""
        try:
            return self._receive(headers, body)
        except Exception as error:  # noqa: BLE001 - controls may be anybody's, and later orders must be heard all the same
            LOG.warning("kvtrail: an order by topic could not be carried out: %r", error)
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, "a defect")

    def _settings(self) -> dict[str, Any]:
        """What the consumer is told: no group, no offsets at the brokers, and none guessed."""
        return {
            **self._address.options.client_settings(),
            "bootstrap_servers": list(self._address.servers),
            "client_id": "kvtrail-degrade",
            "bootstrap_timeout_ms": _ANSWER_MS,
            "reconnect_backoff_max_ms": 1_000,
            "metrics_enabled": False,
            "group_id": None,
            "enable_auto_commit": False,
            "auto_offset_reset": "latest",
            "allow_auto_create_topics": False,
            "metadata_max_age_ms": 10_000,
            "request_timeout_ms": 5_000,
            "fetch_max_wait_ms": _POLL_MS,
            "max_partition_fetch_bytes": _FETCH_BYTES,
        }


def _headers(record: Any) -> dict[str, str]:
    """The headers of a record, by name in lower case; what is no text counts as absent."""
    return {name.lower(): value.decode("ascii", "replace") for name, value in record.headers or () if value is not None}
