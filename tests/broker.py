"""The real Kafka broker of the tests: the operator's where `KVTRAIL_TEST_KAFKA` names one, else one from Maven's jars.

Tests that stop, pause or reconfigure a broker take `own_broker`, which is always one that they started.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kvtrail_cli.demo.broker import LocalBroker, fetch_jars, local_broker, missing_parts
from kvtrail_schema.kafka_client import make_client

from tests.packages import ROOT
from tests.real import require_real

if TYPE_CHECKING:
    from kafka import KafkaAdminClient
    from kafka.consumer.fetcher import ConsumerRecord

VARIABLE = "KVTRAIL_TEST_KAFKA"
PARTS = ROOT / ".parts/kafka"


def said() -> str:
    """Which broker the tests use, for the head of their report."""
    named = os.environ.get(VARIABLE)
    problem = missing_parts(PARTS)
    return f"Kafka broker: {named} ({VARIABLE})" if named else f"Kafka broker: {problem or 'started from ' + str(PARTS)}"


def jars() -> Path:
    """The broker's jars; skips by name where this machine has no Java or Maven."""
    problem = missing_parts(PARTS)
    require_real("Kafka broker", found=not problem, how=f"{problem}, or name a running one in {VARIABLE}")
    return fetch_jars(PARTS)


@pytest.fixture(scope="session")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker that tests may stop and start again, and leave running."""
    jars()
    with local_broker(tmp_path_factory.mktemp("kafka"), PARTS) as broker:
        yield broker


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest) -> str:
    """The address of a broker that tests use and do not touch."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    broker: LocalBroker = request.getfixturevalue("own_broker")
    return broker.bootstrap


@contextmanager
def admin(bootstrap: str) -> "Iterator[KafkaAdminClient]":
    """A client for what only an operator does."""
    from kafka import KafkaAdminClient  # noqa: PLC0415 - half a second that other tests need not pay

    client = make_client(KafkaAdminClient, {"bootstrap_servers": bootstrap})
    try:
        yield client
    finally:
        client.close()


def new_topic(bootstrap: str, partitions: int = 1, **settings: str) -> str:
    """A topic of the test's own; a setting's underscores stand for dots."""
    name = f"kvtrail-test-{uuid.uuid4().hex[:12]}"
    configs = {key.replace("_", "."): value for key, value in settings.items()}
    with admin(bootstrap) as client:
        client.create_topics(
            {name: {"num_partitions": partitions, "replication_factor": 1, "configs": configs}}, wait_for_metadata=True
        )
    return name


def records_in(bootstrap: str, topic: str) -> "list[ConsumerRecord]":
    """Everything that a topic holds now, partition by partition in order."""
    from kafka import KafkaConsumer, TopicPartition  # noqa: PLC0415 - as in admin

    consumer = make_client(KafkaConsumer, {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest"})
    try:
        places = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic))]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        found: list[ConsumerRecord] = []
        while any(consumer.position(place) < ends[place] for place in places):
            found += [record for records in consumer.poll(500).values() for record in records]
        return sorted(found, key=lambda record: (record.partition, record.offset))
    finally:
        consumer.close()


def values_in(bootstrap: str, topic: str) -> list[bytes]:
    """The frames in a topic."""
    return [record.value for record in records_in(bootstrap, topic)]
