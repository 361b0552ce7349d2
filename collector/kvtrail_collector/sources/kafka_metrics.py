"""What the Kafka source counts, as Prometheus metrics; read when somebody asks. Loads no Kafka client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from kvtrail_collector.metric_families import counter, gauge, labelled, labelled_counter
from kvtrail_collector.sources.kafka_monitor import KafkaMonitor, SourceState
from kvtrail_collector.store import Store

UP: Final = frozenset({SourceState.READING, SourceState.PAUSED})
"""The states in which a source does its work."""


class KafkaCollector(Collector):
    """Reads the source's own counts, and what the store says of its positions."""

    def __init__(self, store: Store, monitor: KafkaMonitor) -> None:
        self._store = store
        self._monitor = monitor

    def collect(self) -> Iterator[Metric]:
        """The source's counts as metrics."""
        now = self._monitor.statistics()
        positions = self._store.positions()
        yield counter("kvtrail_kafka_records_total", now.records)
        yield counter("kvtrail_kafka_records_quarantined_total", now.quarantined)
        yield counter("kvtrail_kafka_dead_letters_failed_total", now.dead_letters_failed)
        yield counter("kvtrail_kafka_rereads_total", now.rereads)
        yield gauge("kvtrail_kafka_up", int(now.state in UP))
        yield gauge("kvtrail_kafka_paused", int(now.state is SourceState.PAUSED))
        lag: dict[tuple[str, ...], int] = {(str(partition),): records for partition, records in now.lag.items()}
        yield labelled("kvtrail_kafka_lag_records", ["partition"], lag)
        expired: dict[tuple[str, ...], int] = {
            (place.source, str(place.partition)): at.expired for place, at in positions.items()
        }
        yield labelled_counter("kvtrail_kafka_records_expired_total", ["source", "partition"], expired)
