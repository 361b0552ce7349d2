"""What the routes share: built once when the app is made, passed in, never global."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from anyio import CapacityLimiter
from kvtrail_schema.clock import Clock

from kvtrail_collector.alerts.alerter import Alerter
from kvtrail_collector.answers import Answers
from kvtrail_collector.metrics import Metrics
from kvtrail_collector.security import Guard
from kvtrail_collector.settings import Settings
from kvtrail_collector.sources.kafka_monitor import KafkaMonitor
from kvtrail_collector.store import Store


@dataclass(frozen=True, slots=True)
class Context:
    """Everything a route may use. `uploads` and `decoders` are used on the event loop alone.

    Decoding has threads of its own, so that questions, however slow, never keep events from coming in. `names` is the
    operator's map of hashed tenants and models.
    """

    settings: Settings
    sources: Mapping[str, str]
    store: Store
    clock: Clock
    guard: Guard
    metrics: Metrics
    answers: Answers
    uploads: asyncio.Semaphore
    decoders: CapacityLimiter
    kafka: KafkaMonitor | None
    alerter: Alerter
    names: Mapping[str, str]
