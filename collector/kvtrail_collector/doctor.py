"""Whether the collector can do its work, check by check, each with what would mend it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kvtrail_collector.context import Context
from kvtrail_collector.doctor_shapes import Check, Diagnosis, EffectiveSetting
from kvtrail_collector.settings import Settings
from kvtrail_collector.sources.kafka_metrics import UP
from kvtrail_collector.store import MEMORY

MIN_FREE_BYTES: Final = 1 << 30


def examine(context: Context) -> Diagnosis:
    """Run all checks. Asks the file system and the store; runs on a worker thread, milliseconds."""
    settings = tuple(
        EffectiveSetting(name, getattr(context.settings, name), context.sources.get(name, "default"))
        for name in Settings.__struct_fields__
    )
    checks = (_writer(context), _queue(context), _disk(context), *_kafka(context))
    return Diagnosis(settings=settings, checks=checks, device=context.answers.device())


def _writer(context: Context) -> Check:
    """The writer's thread runs and the database takes what it writes."""
    alive = context.store.statistics().alive
    detail = "runs" if alive else "has ended, or the database gave up"
    return Check("store writer", alive, detail, "" if alive else "start the collector again; what it acknowledged is on disk")


def _queue(context: Context) -> Check:
    """There is room before the writer."""
    inbox = context.store.statistics().inbox
    ok = inbox.waiting < inbox.capacity and inbox.waiting_bytes < inbox.capacity_bytes
    detail = f"{inbox.waiting} of {inbox.capacity} batches, {inbox.waiting_bytes} of {inbox.capacity_bytes} bytes wait"
    return Check("write queue", ok, detail, "" if ok else "give the collector a faster disk or more cores, or send less")


def _disk(context: Context) -> Check:
    """The disk has room."""
    if context.store.where == MEMORY:
        return Check("disk", ok=True, detail="the store is in memory", fix="")
    free_bytes = shutil.disk_usage(Path(context.store.where).resolve().parent).free
    ok = free_bytes >= MIN_FREE_BYTES
    return Check("disk", ok, f"{free_bytes} bytes free", "" if ok else "make room, or move the store with KVTRAIL_STORE")


def _kafka(context: Context) -> Iterator[Check]:
    """The source that reads from Kafka does so; nothing where there is none."""
    if context.kafka is None:
        return
    now = context.kafka.statistics()
    ok = now.state in UP
    behind = f"{sum(now.lag.values())} records of {len(now.lag)} partitions are not stored"
    detail = f"{now.state.value}; {now.detail or behind}"
    yield Check("kafka source", ok, detail, "" if ok else "see that the brokers run and that the topic may be read")
