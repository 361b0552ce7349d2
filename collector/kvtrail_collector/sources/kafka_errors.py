"""The one place where errors of the Kafka client become the collector's."""

from collections.abc import Iterator
from contextlib import contextmanager

from kafka import errors

from kvtrail_collector.errors import SourceUnavailable


@contextmanager
def map_kafka_errors(where: str) -> Iterator[None]:
    """Raise our error in place of the client's.

    Raises:
        SourceUnavailable: whatever it was: brokers come back, and an operator can mend the rest.
    """
    try:
        yield
    # Beside its own errors the client lets through those of sockets, of TLS, and what its state machine asserts.
    except (errors.KafkaError, OSError, RuntimeError, ValueError, AssertionError) as error:
        do = "see that the brokers run, that the topic is there (kvtrail doctor --create-topic), and that we may read it"
        raise SourceUnavailable(f"{type(error).__name__}: {error}", where=where, do=do) from error
