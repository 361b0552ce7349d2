"""Prometheus metrics in a registry of their own: what the store counts is read when somebody asks, not copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kvtrail_schema.clock import Clock
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from kvtrail_collector.loss import loss_of
from kvtrail_collector.metric_families import counter, gauge, labelled
from kvtrail_collector.metric_names import HELP
from kvtrail_collector.metrics_requests import RequestMetrics
from kvtrail_collector.sources.kafka_metrics import KafkaCollector
from kvtrail_collector.sources.kafka_monitor import KafkaMonitor
from kvtrail_collector.store import Store

_INGEST_BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)


class MetricsText(NamedTuple):
    """Metrics as text, and what form that is in."""

    body: bytes
    media_type: str


class Metrics:
    """What the routes count, and one registry over all."""

    def __init__(self, store: Store, clock: Clock, kafka: KafkaMonitor | None = None) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._quarantined = Counter(
            "kvtrail_batches_quarantined", HELP["kvtrail_batches_quarantined_total"], ["status"], registry=self._registry
        )
        self._ingest = Histogram(
            "kvtrail_ingest_seconds", HELP["kvtrail_ingest_seconds"], buckets=_INGEST_BUCKETS_S, registry=self._registry
        )
        self._registry.register(_StoreCollector(store, clock))
        self._registry.register(RequestMetrics(store))
        if kafka is not None:
            self._registry.register(KafkaCollector(store, kafka))

    def quarantined(self, status: int) -> None:
        """A batch was refused for good."""
        self._quarantined.labels(str(status)).inc()

    def ingested(self, duration_ns: int) -> None:
        """A batch was committed."""
        self._ingest.observe(duration_ns / 1e9)

    def text(self, accept: str = "") -> MetricsText:
        """All metrics, in the form that the asker prefers: OpenMetrics, or Prometheus' own. Runs off the event loop."""
        encode, media_type = choose_encoder(accept)
        return MetricsText(encode(self._registry), media_type)


class _StoreCollector(Collector):
    """Reads the store's own counts when Prometheus asks."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """The store's counts as metrics."""
        done = self._store.statistics()
        yield counter("kvtrail_events_stored_total", done.stored)
        yield counter("kvtrail_events_duplicate_total", done.duplicate)
        yield counter("kvtrail_commits_total", done.commits)
        yield counter("kvtrail_batches_failed_total", done.failed)
        yield counter("kvtrail_batches_refused_total", done.inbox.refused)
        yield gauge("kvtrail_write_queue_batches", done.inbox.waiting)
        yield gauge("kvtrail_write_queue_bytes", done.inbox.waiting_bytes)
        yield gauge("kvtrail_writer_up", int(done.alive))
        yield counter("kvtrail_headers_unknown_total", done.unknown_headers)
        yield from self._sealed()
        yield from self._balance()

    def _sealed(self) -> Iterator[Metric]:
        """Where events are, and what sealing did."""
        sealed = self._store.sealed()
        yield gauge("kvtrail_sealed_files", sealed.parts)
        yield gauge("kvtrail_sealed_events", sealed.rows)
        yield gauge("kvtrail_sealed_bytes", sealed.size_bytes)
        yield gauge("kvtrail_hot_bytes", self._store.hot_bytes())
        yield counter("kvtrail_events_expired_total", sealed.expired_rows)
        yield counter("kvtrail_seal_failures_total", sealed.failures)

    def _balance(self) -> Iterator[Metric]:
        """What is lost, by engine; what expired is `kvtrail_events_expired_total`."""
        streams = loss_of(self._store.accounts().values(), self._clock.wall_ns()).streams
        unaccounted: dict[str, int] = {}
        dropped: dict[tuple[str, ...], int] = {}
        for stream in streams:
            unaccounted[stream.engine] = unaccounted.get(stream.engine, 0) + stream.unaccounted
            for drop in (one for one in stream.dropped if not one.is_expiry):
                key = (stream.engine, drop.stage, drop.reason)
                dropped[key] = dropped.get(key, 0) + drop.count
        yield gauge("kvtrail_streams", len(streams))
        yield labelled("kvtrail_events_unaccounted", ["engine"], {(engine,): count for engine, count in unaccounted.items()})
        yield labelled("kvtrail_events_dropped", ["engine", "stage", "reason"], dropped)
