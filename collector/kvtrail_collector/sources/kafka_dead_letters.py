"""Records that were put aside, into a topic for whoever mends their sender. The table of the store is what counts.

So a topic that takes nothing holds nobody up: what it misses is counted, and it is asked again only after a while.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any, Final

from kafka import KafkaProducer, errors
from kvtrail_schema.clock import Clock
from kvtrail_schema.kafka_client import make_client

from kvtrail_collector.errors import SourceUnavailable
from kvtrail_collector.sources.kafka_errors import map_kafka_errors
from kvtrail_collector.sources.kafka_monitor import KafkaMonitor
from kvtrail_collector.steps.intake import DeadLetter

_LOG: Final = logging.getLogger(__name__)
_DELIVER_TIMEOUT_S: Final = 3.0
_REST_NS: Final = 30 * 1_000_000_000
_CLOSE_TIMEOUT_S: Final = 1.0
_LARGEST_BYTES: Final = 100_000_000


class DeadLetterTopic:
    """A producer for the dead-letter topic; used by the source's thread alone."""

    def __init__(self, topic: str, settings: dict[str, Any], *, clock: Clock, monitor: KafkaMonitor, source: str) -> None:
        self._topic = topic
        self._settings = {
            **settings,
            "metrics_enabled": False,
            "acks": "all",
            "allow_auto_create_topics": False,
            # What the source topic could hold is for the brokers to refuse here, not for us.
            "max_request_size": _LARGEST_BYTES,
            "max_block_ms": int(_DELIVER_TIMEOUT_S * 1000),
            "request_timeout_ms": 2000,
            "delivery_timeout_ms": int(_DELIVER_TIMEOUT_S * 1000),
        }
        self._clock = clock
        self._monitor = monitor
        self._source = source
        self._producer: KafkaProducer | None = None
        self._rests_until_ns = 0

    def put(self, letter: DeadLetter) -> None:
        """Send a record on, with why and where it stood. Blocks until it is acknowledged, for a few seconds at most."""
        if self._clock.monotonic_ns() < self._rests_until_ns:
            self._monitor.count(dead_letters_failed=1)
            return
        try:
            with map_kafka_errors(self._topic):
                self._send(letter)
        except SourceUnavailable as error:
            _LOG.warning("a dead letter was not delivered: %s", error)
            self._monitor.count(dead_letters_failed=1)
            if not isinstance(error.__cause__, errors.MessageSizeTooLargeError):  # that is this record's trouble alone
                self._rests_until_ns = self._clock.monotonic_ns() + _REST_NS
            self.close()

    def close(self) -> None:
        """Close the connections; waits for nothing."""
        producer, self._producer = self._producer, None
        if producer is not None:
            # Its own `close` would wait for what it holds, and leave its thread behind when that takes longer than it may.
            producer._sender.force_close()  # noqa: SLF001 - see above
            with suppress(errors.KafkaError, OSError, RuntimeError, AssertionError):
                producer.close(timeout=_CLOSE_TIMEOUT_S)

    def _send(self, letter: DeadLetter) -> None:
        """One record, acknowledged."""
        if self._producer is None:
            self._producer = make_client(KafkaProducer, self._settings)
        record = letter.record
        headers = [
            ("reason", letter.reason.encode()),
            ("source", self._source.encode()),
            ("partition", str(record.partition).encode()),
            ("offset", str(record.offset).encode()),
        ]
        self._producer.send(self._topic, key=b"", value=record.value, headers=headers).get(_DELIVER_TIMEOUT_S)
