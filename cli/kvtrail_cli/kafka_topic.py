"""The Kafka part of `kvtrail doctor`: is the topic there, and make it if asked to. Loads the client only where it is needed."""

from collections.abc import Iterator
from typing import NamedTuple

from kvtrail_collector.doctor_shapes import Check
from kvtrail_collector.settings import Settings
from kvtrail_collector.sources.kafka_settings import kafka_settings

from kvtrail_cli.errors import InputInvalid


class TopicChoice(NamedTuple):
    """How a topic is to be made."""

    partitions: int
    replicas: int
    retention_hours: int
    retention_bytes: int


def made_topic(settings: Settings, choice: TopicChoice) -> str:
    """Make the topic that the settings name; says what was done.

    Raises:
        InputInvalid: the settings name no brokers.
    """
    kafka = kafka_settings(settings)
    if kafka is None:
        message = "--create-topic needs brokers: set KVTRAIL_KAFKA_BOOTSTRAP=host:port, or kafka_bootstrap in the --config file"
        raise InputInvalid(message)
    from kvtrail_collector.sources.kafka_topic import TopicShape, create_topic  # noqa: PLC0415 - loads the client

    if create_topic(kafka, TopicShape(*choice)):
        return f"{kafka.where}: made, {choice.partitions} partitions, {choice.retention_hours} h"
    return f"{kafka.where}: was there already, and is left as it is"


def kafka_checks(settings: Settings) -> Iterator[Check]:
    """Whether brokers answer and the topic is there; nothing where the settings name no brokers."""
    kafka = kafka_settings(settings)
    if kafka is None:
        return
    from kvtrail_collector.errors import SourceUnavailable  # noqa: PLC0415 - as below
    from kvtrail_collector.sources.kafka_topic import partitions_of  # noqa: PLC0415 - loads the client

    try:
        partitions = partitions_of(kafka)
    except SourceUnavailable as error:
        yield Check("kafka topic", ok=False, detail=f"{kafka.where}: {error.trouble.what}", fix=error.trouble.do)
        return
    fix = "" if partitions else "kvtrail doctor --create-topic"
    detail = f"{kafka.where}: {partitions} partitions" if partitions else f"{kafka.where}: there is no such topic"
    yield Check("kafka topic", bool(partitions), detail, fix)
