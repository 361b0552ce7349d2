"""One attempt to put one order into a Kafka topic: the body as the value, the signed headers as headers, keyed by engine."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from kvtrail_schema.degrade import read_order
from kvtrail_schema.kafka_client import make_client

from kvtrail_collector.alerts.attempt import Attempt, Outcome
from kvtrail_collector.alerts.targets_topic import TopicAddress
from kvtrail_collector.errors import SourceUnavailable

if TYPE_CHECKING:
    from kafka import KafkaProducer

_CLOSE_TIMEOUT_S: Final = 1.0


def post_to_topic(address: TopicAddress, signed: Mapping[str, str], body: bytes, timeout_s: float) -> Attempt:
    """Send it, and wait until all replicas in sync have it. Makes a connection for it, as a webhook does; never raises what is
    expected. That it lies in the topic is delivery: what the engine did of it, its events show.
    """
    from kvtrail_collector.sources.kafka_errors import map_kafka_errors  # noqa: PLC0415 - loads the client

    where = str(address)
    headers = [(name, value.encode()) for name, value in signed.items()]
    try:
        with map_kafka_errors(where):
            sent = _send(address, headers, body, timeout_s)
    except SourceUnavailable as error:
        return Attempt(Outcome.AGAIN, f"{where}: {error.trouble.what}")
    return Attempt(Outcome.DELIVERED, f"{where}: partition {sent.partition}, offset {sent.offset}")


def _send(address: TopicAddress, headers: list[tuple[str, bytes]], body: bytes, timeout_s: float) -> Any:
    """One record, acknowledged."""
    from kafka import KafkaProducer as Producer  # noqa: PLC0415 - loads the client

    producer = make_client(Producer, _settings(address, timeout_s))
    try:
        key = read_order(body).engine.encode()
        return producer.send(address.topic, key=key, value=body, headers=headers).get(timeout_s)
    finally:
        _give_up(producer)


def _settings(address: TopicAddress, timeout_s: float) -> dict[str, Any]:
    """What the producer is told, in the client's names."""
    timeout_ms = int(timeout_s * 1000)
    return {
        **address.options.client_settings(),
        "bootstrap_servers": list(address.servers),
        "client_id": "kvtrail-orders",
        "acks": "all",
        "metrics_enabled": False,
        "allow_auto_create_topics": False,
        "bootstrap_timeout_ms": timeout_ms,
        "max_block_ms": timeout_ms,
        "request_timeout_ms": timeout_ms,
        "delivery_timeout_ms": timeout_ms,
    }


def _give_up(producer: KafkaProducer) -> None:
    """End a producer without waiting for what it holds: its own `close` would, and may leave its thread behind."""
    producer._sender.force_close()  # noqa: SLF001 - see above
    with suppress(Exception):
        producer.close(timeout=_CLOSE_TIMEOUT_S)
