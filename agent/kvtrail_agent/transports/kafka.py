"""Frames as records of one Kafka topic: one record a frame, keyed by engine, acknowledged by all replicas in sync.

The one file of the agent that loads the Kafka client. A producer that could not deliver is thrown away with what it holds,
so that nothing piles up while brokers are away; the shipper sends the same frame again by a new one, and the collector
keeps each seq once.
"""

import contextlib
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kafka import KafkaProducer, errors
from kafka.producer.future import FutureRecordMetadata
from kvtrail_schema.header import DEFAULT_LIMITS, BatchHeader
from kvtrail_schema.kafka_client import make_client
from kvtrail_schema.kafka_record import RECORD_OVERHEAD_BYTES, headers_of, key_of

from kvtrail_agent.errors import BatchRejected, TransportUnavailable
from kvtrail_agent.transports.files import TransportFiles
from kvtrail_agent.transports.kafka_address import KafkaAddress, read_address

MEMORY_BYTES: Final = 32 << 20
"""The most bytes of frames that are handed over and not acknowledged: two of the largest."""

_CLOSE_TIMEOUT_S: Final = 1.0
_NEVER: Final = (
    errors.MessageSizeTooLargeError,
    errors.RecordListTooLargeError,
    errors.InvalidRecordError,
    errors.InvalidTimestampError,
    errors.UnsupportedForMessageFormatError,
)
"""What brokers say of a record that they will never take; all else an operator, or time, can mend."""


class KafkaTimeouts(NamedTuple):
    """How long to wait for brokers; all of it is less than the shipper waits for a flush."""

    connect_s: float = 3.0
    """For the first broker to answer, and for what it knows of the topic."""
    request_s: float = 3.0
    """For the answer to one request."""
    deliver_s: float = 8.0
    """For the acknowledgement of a record, all retries together."""


class KafkaTransport:
    """A producer for one topic. Makes its connections at the first frame; used by the shipper's thread alone."""

    def __init__(self, address: KafkaAddress, *, timeouts: KafkaTimeouts = KafkaTimeouts()) -> None:  # noqa: B008 - it is frozen
        self._address = address
        self._timeouts = timeouts
        self._producer: KafkaProducer | None = None
        self._under_way: deque[tuple[FutureRecordMetadata, int]] = deque()

    def send(self, frame: bytes, header: BatchHeader) -> None:
        """Hand a frame to the producer. Blocks at the first one only, until a broker has told of the topic."""
        waiting_bytes = sum(size for _, size in self._under_way)
        if self._under_way and waiting_bytes + len(frame) > MEMORY_BYTES:
            message = f"{self._address}: {waiting_bytes} bytes wait for their acknowledgement already"
            raise TransportUnavailable(message)
        with self._or_abandon():
            future = self._connected().send(self._address.topic, key=key_of(header), value=frame, headers=headers_of(header))
        self._under_way.append((future, len(frame)))

    def flush(self, timeout_s: float) -> None:
        """Wait until all replicas in sync have every frame."""
        deadline_s = time.monotonic() + timeout_s
        with self._or_abandon():
            for future, _ in self._under_way:
                future.get(max(0.0, deadline_s - time.monotonic()))
        self._under_way.clear()

    def close(self) -> None:
        """Close the connections; what is not acknowledged is given up."""
        producer, self._producer = self._producer, None
        self._under_way.clear()
        if producer is not None:
            _give_up(producer)

    def _connected(self) -> KafkaProducer:
        """The producer, made when there is none."""
        if self._producer is None:
            self._producer = make_client(KafkaProducer, self._settings())
        return self._producer

    def _settings(self) -> dict[str, Any]:
        """What the producer is told, in the client's names."""
        wait = self._timeouts
        return {
            **self._address.options.client_settings(),
            "bootstrap_servers": list(self._address.servers),
            "client_id": "kvtrail-shipper",
            "acks": "all",
            "enable_idempotence": True,
            # A frame is one record of its own and compressed already.
            "compression_type": None,
            "linger_ms": 0,
            "batch_size": 0,
            "max_request_size": DEFAULT_LIMITS.frame_bytes + RECORD_OVERHEAD_BYTES,
            # A topic that appears by itself has neither our partitions nor our limits.
            "allow_auto_create_topics": False,
            "bootstrap_timeout_ms": int(wait.connect_s * 1000),
            "max_block_ms": int(wait.connect_s * 1000),
            "request_timeout_ms": int(wait.request_s * 1000),
            "delivery_timeout_ms": int(wait.deliver_s * 1000),
            "reconnect_backoff_max_ms": 1000,
            "metrics_enabled": False,
        }

    @contextlib.contextmanager
    def _or_abandon(self) -> Iterator[None]:
        """Throw the producer away if it fails, and raise our error in place of its."""
        try:
            with map_kafka_errors(str(self._address)):
                yield
        except (TransportUnavailable, BatchRejected):
            self.close()
            raise


@contextlib.contextmanager
def map_kafka_errors(where: str) -> Iterator[None]:
    """The one place where errors of the Kafka client become ours; the most specific one wins.

    Raises:
        BatchRejected: no broker will ever take the record.
        TransportUnavailable: anything else; the record may be sent again.
    """
    try:
        yield
    except _NEVER as error:
        message = f"{where}: {type(error).__name__}: {error}"
        raise BatchRejected(message) from error
    # Beside its own errors the client lets through those of sockets, of TLS, and what its state machine asserts.
    except (errors.KafkaError, OSError, RuntimeError, ValueError, AssertionError) as error:
        message = f"{where}: {type(error).__name__}: {error}"
        raise TransportUnavailable(message) from error


def _give_up(producer: KafkaProducer) -> None:
    """End a producer without waiting for what it holds.

    The client's own `close` first waits for records under way and raises when that takes longer than it may, leaving its
    thread behind; so the thread is told first that nothing more will be sent.
    """
    producer._sender.force_close()  # noqa: SLF001 - see above
    with contextlib.suppress(errors.KafkaError, OSError, RuntimeError, AssertionError):
        producer.close(timeout=_CLOSE_TIMEOUT_S)


def open(url: str, files: TransportFiles) -> KafkaTransport:  # noqa: A001 - the name that every transport's module has
    """A transport to the topic of a `kafka://host:port[,host:port]/topic` address. Connects at the first frame.

    Raises:
        SettingsInvalid: the address or the file of options is not usable.
    """
    return KafkaTransport(read_address(url, files))
