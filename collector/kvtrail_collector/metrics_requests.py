"""Histograms of what requests felt, counted in the store when Prometheus asks, at most once for each version of its data."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import Final

import duckdb
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from kvtrail_collector.metric_names import HELP, HistogramName
from kvtrail_collector.store import Store
from kvtrail_collector.store.latencies import TPOT, TTFT, Measure, count_latencies

_FAMILIES: Final[dict[HistogramName, Measure]] = {
    "kvtrail_request_ttft_seconds": TTFT,
    "kvtrail_request_tpot_seconds": TPOT,
}


class RequestMetrics(Collector):
    """Counts all requests ever stored: some 10 ms for 100,000 of them. Used by worker threads; blocks on the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._families: list[Metric] = []  # guarded by _lock
        self._version = -1  # guarded by _lock

    def collect(self) -> Iterator[Metric]:
        """Both histograms, by engine."""
        with self._lock:
            version = self._store.version
            if version != self._version:
                with self._store.read() as cursor:
                    self._families = [_family(cursor, *one) for one in _FAMILIES.items()]
                self._version = version
            yield from self._families


def _family(cursor: duckdb.DuckDBPyConnection, name: HistogramName, measure: Measure) -> Metric:
    """One histogram: how many were at most so long, for each bound, and all of them together."""
    family = HistogramMetricFamily(name, HELP[name], labels=["engine"])
    for engine, counts in groupby(count_latencies(cursor, measure), key=attrgetter("engine")):
        own = list(counts)
        buckets = [(_bound(one.at_most_ms), one.requests) for one in own]
        family.add_metric([engine], buckets=buckets, sum_value=own[-1].total_ns / 1e9)
    return family


def _bound(ms: float) -> str:
    """A bound in seconds, as Prometheus writes it."""
    return "+Inf" if math.isinf(ms) else str(ms / 1_000)
