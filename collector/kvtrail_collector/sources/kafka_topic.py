"""Makes the topic: as many partitions as engines should be read side by side, records as large as our batches may be."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafka import KafkaAdminClient
from kafka.errors import TopicAlreadyExistsError
from kvtrail_schema.header import DEFAULT_LIMITS
from kvtrail_schema.kafka_client import make_client
from kvtrail_schema.kafka_record import RECORD_OVERHEAD_BYTES

from kvtrail_collector.errors import SettingsInvalid, SourceUnavailable
from kvtrail_collector.sources.kafka_errors import map_kafka_errors
from kvtrail_collector.sources.kafka_settings import KafkaSettings

_MS_PER_HOUR: Final = 3_600_000
_UNLIMITED: Final = -1


class TopicShape(NamedTuple):
    """How a topic is made."""

    partitions: int = 6
    replicas: int = -1
    """Copies of each record; -1: as the brokers do by default."""
    retention_hours: int = 72
    """How long records are kept: longer than a collector may be away."""
    retention_bytes: int = _UNLIMITED
    """The most bytes of one partition; -1: no limit."""


def create_topic(settings: KafkaSettings, shape: TopicShape) -> bool:
    """Make the topic, and the dead-letter topic where one is set. Blocks until each has its leaders; false: it was there.

    A topic that is there already is left as it is.

    Raises:
        SourceUnavailable: no broker answers, or they refuse.
        SettingsInvalid: the shape is none.
    """
    if shape.partitions < 1 or shape.retention_hours < 1:
        what = f"{shape.partitions} partitions for {shape.retention_hours} hours"
        raise SettingsInvalid(what, where=settings.where, do="give at least one of each")
    with map_kafka_errors(settings.where):
        admin = make_client(KafkaAdminClient, settings.client())
    try:
        made = _create(admin, settings.topic, shape, settings.where)
        if settings.dead_letter_topic:
            _create(admin, settings.dead_letter_topic, shape._replace(partitions=1), settings.where)
        return made
    finally:
        admin.close()


def partitions_of(settings: KafkaSettings) -> int:
    """How many partitions the topic has; 0 where there is no such topic. Asks a broker.

    Raises:
        SourceUnavailable: no broker answers, or they refuse.
    """
    with map_kafka_errors(settings.where):
        admin = make_client(KafkaAdminClient, settings.client())
        try:
            if settings.topic not in admin.list_topics():
                return 0
            (topic,) = admin.describe_topics([settings.topic])
            return len(topic["partitions"])
        finally:
            admin.close()


def _create(admin: KafkaAdminClient, topic: str, shape: TopicShape, where: str) -> bool:
    """Make one topic; false where it was there."""
    wanted: dict[str, Any] = {
        "num_partitions": shape.partitions,
        "replication_factor": shape.replicas,
        "configs": {
            "retention.ms": str(shape.retention_hours * _MS_PER_HOUR),
            "retention.bytes": str(shape.retention_bytes),
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "max.message.bytes": str(DEFAULT_LIMITS.frame_bytes + RECORD_OVERHEAD_BYTES),
        },
    }
    try:
        with map_kafka_errors(where):
            admin.create_topics({topic: wanted}, wait_for_metadata=True)
    except SourceUnavailable as error:
        if isinstance(error.__cause__, TopicAlreadyExistsError):
            return False
        raise
    return True
