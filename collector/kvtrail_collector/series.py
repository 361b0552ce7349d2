"""TTFT over time, by arrival: what a chart of P99 shows, and what the search for a spike looks at."""

import msgspec
import numpy as np

from kvtrail_collector.population import Population

SECOND_NS = 1_000_000_000
_PERCENTILES = (50.0, 95.0, 99.0)


class SeriesPoint(msgspec.Struct, frozen=True):
    """The requests that arrived in [start, end), and their time to first token; null where none arrived."""

    start_ns: int
    end_ns: int
    requests: int
    censored: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


def p99_series(population: Population, bucket_ns: int = SECOND_NS) -> list[SeriesPoint]:
    """Percentiles of TTFT in buckets of equal length from the first arrival on. Censored requests count so far."""
    if not len(population):
        return []
    start = int(population.arrived_ns[0])
    buckets = int(population.arrived_ns[-1] - start) // bucket_ns + 1
    edges = start + np.arange(buckets + 1, dtype=np.int64) * bucket_ns
    bounds = np.searchsorted(population.arrived_ns, edges).tolist()
    return [
        _point(int(edges[index]), int(edges[index + 1]), population, slice(bounds[index], bounds[index + 1]))
        for index in range(buckets)
    ]


def _point(start_ns: int, end_ns: int, population: Population, own: slice) -> SeriesPoint:
    """One bucket."""
    latency = population.latency_ns[own]
    if not len(latency):
        return SeriesPoint(start_ns, end_ns, 0, 0, None, None, None)
    p50, p95, p99 = (np.percentile(latency, _PERCENTILES) / 1e6).tolist()
    return SeriesPoint(start_ns, end_ns, len(latency), int(population.censored[own].sum()), p50, p95, p99)
