"""Histograms of what requests felt, counted in the store when Prometheus asks, at most once for each version of its data."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Final, NamedTuple

import duckdb
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from kvtrail_collector.metric_names import HELP, HistogramName
from kvtrail_collector.store import Store

# From what a cached prefix takes to what nobody waits for: steps of about two and a half, in milliseconds.
TTFT_BUCKETS_MS: Final = (2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000)
TPOT_BUCKETS_MS: Final = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000)
_TTFT: Final = "(first_token_ns - arrived_ns) / 1e6"
_TPOT: Final = "CASE WHEN output_tokens > 1 THEN (ended_ns - first_token_ns) / 1e6 / (output_tokens - 1) END"


class _Measure(NamedTuple):
    """One histogram: its name, what it measures in ms, and its buckets."""

    name: HistogramName
    sql: str
    buckets_ms: tuple[float, ...]


_MEASURES: Final = (
    _Measure("kvtrail_request_ttft_seconds", _TTFT, TTFT_BUCKETS_MS),
    _Measure("kvtrail_request_tpot_seconds", _TPOT, TPOT_BUCKETS_MS),
)


class RequestMetrics(Collector):
    """Counts all requests of the store: some 10 ms for 100,000 of them. Used by worker threads; blocks on the store."""

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
                    self._families = [_family(cursor, measure) for measure in _MEASURES]
                self._version = version
            yield from self._families


def _family(cursor: duckdb.DuckDBPyConnection, measure: _Measure) -> Metric:
    """One histogram: how many were at most so long, for each bound, and all of them together."""
    counts = ", ".join(f"count(*) FILTER (ms <= {bound})" for bound in measure.buckets_ms)
    rows = cursor.execute(
        f"""
        SELECT engine, count(ms), coalesce(sum(ms), 0) / 1e3, {counts}
        FROM (SELECT engine, {measure.sql} AS ms FROM requests JOIN streams USING (stream_id))
        WHERE ms >= 0 GROUP BY engine ORDER BY engine
        """  # noqa: S608  # constants of ours
    ).fetchall()
    family = HistogramMetricFamily(measure.name, HELP[measure.name], labels=["engine"])
    for engine, count, total_s, *cumulative in rows:
        bounds = [str(bound / 1_000) for bound in measure.buckets_ms]
        buckets = [*zip(bounds, cumulative, strict=True), ("+Inf", count)]
        family.add_metric([engine], buckets=buckets, sum_value=total_s)
    return family
