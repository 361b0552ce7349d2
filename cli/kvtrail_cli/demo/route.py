"""The way of the demo's events from the engine to the collector: straight by HTTP, or through a real Kafka broker."""

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from kvtrail_cli.demo.broker import local_broker
from kvtrail_cli.output import note

TEST_BROKER: Final = "KVTRAIL_TEST_KAFKA"
_PARTITIONS: Final = 3


class DemoTransport(StrEnum):
    """How events travel in the demo."""

    HTTP = "http"
    KAFKA = "kafka"


class Route(NamedTuple):
    """What collector and recorder are told; without an address the recorder sends to the collector itself."""

    collector_flags: tuple[str, ...] = ()
    address: str | None = None


@contextmanager
def demo_route(transport: DemoTransport, bootstrap: str | None, directory: Path) -> Iterator[Route]:
    """Make the way ready; for Kafka: a broker that is named, or one on this machine for as long as the demo lasts.

    Raises:
        PartMissing: nobody named a broker, and this machine lacks what it needs to start one.
    """
    if transport is DemoTransport.HTTP:
        yield Route()
        return
    with ExitStack() as stack:
        servers = bootstrap or os.environ.get(TEST_BROKER)
        if not servers:
            note("starting a Kafka broker on this machine (its jars are fetched the first time)")
            servers = stack.enter_context(local_broker(directory / "broker")).bootstrap
        # The store of a demo is new, so its topic is too: one that is there would bring the events of an earlier demo.
        topic = f"kvtrail-demo-{secrets.token_hex(4)}"
        _make_topic(servers, topic)
        note(f"events travel through Kafka: kafka://{servers}/{topic}")
        yield Route(("--kafka-bootstrap", servers, "--kafka-topic", topic), f"kafka://{servers}/{topic}")


def _make_topic(servers: str, topic: str) -> None:
    """Make the demo's topic; it is small and goes after an hour."""
    from kvtrail_collector.settings import Settings  # noqa: PLC0415 - for those who use Kafka
    from kvtrail_collector.sources.kafka_settings import kafka_settings  # noqa: PLC0415 - as above
    from kvtrail_collector.sources.kafka_topic import TopicShape, create_topic  # noqa: PLC0415 - loads the client

    kafka = kafka_settings(Settings(kafka_bootstrap=servers, kafka_topic=topic))
    if kafka is not None:
        create_topic(kafka, TopicShape(partitions=_PARTITIONS, retention_hours=1))
