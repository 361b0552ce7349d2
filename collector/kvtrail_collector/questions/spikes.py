"""Which stretches of time were slow, and how slow."""

from __future__ import annotations

import duckdb
import msgspec
import numpy as np

from kvtrail_collector.facts_rows import Interval
from kvtrail_collector.population import Population
from kvtrail_collector.questions.clocks import clock_offset_ns, one_clock
from kvtrail_collector.questions.population import stored_population
from kvtrail_collector.questions.scope import EARLIEST_NS, LATEST_NS, Scope, streams_of
from kvtrail_collector.window_spikes import find_stretches


class Spike(msgspec.Struct, frozen=True):
    """One slow stretch of arrivals, [start, end), and how slow; `usual_p95_ms` is of the requests outside all of them."""

    start_ns: int
    end_ns: int
    requests: int
    p95_ms: float
    p99_ms: float
    usual_p95_ms: float


class Spikes(msgspec.Struct, frozen=True):
    """At most eight spikes, the latest first. Monotonic times plus `clock_offset_ns` are wall times."""

    spikes: tuple[Spike, ...]
    clock_offset_ns: int | None = None
    device: str | None = None
    schema: int = 1


def spikes(cursor: duckdb.DuckDBPyConnection, scope: Scope, device: str | None) -> Spikes:
    """The spikes of an engine and rank in a stretch of time, without its warm-up. Worker thread; the time to read the
    kept ledgers.
    """
    wanted = one_clock(cursor, streams_of(cursor, scope)).streams
    start_ns = EARLIEST_NS if scope.start_ns is None else scope.start_ns
    end_ns = LATEST_NS if scope.end_ns is None else scope.end_ns
    own = stored_population(cursor, wanted).population.arrived_in(start_ns, end_ns)
    return Spikes(_spikes(own), clock_offset_ns(cursor, wanted), device)


def _spikes(population: Population) -> tuple[Spike, ...]:
    """The spikes of some requests."""
    stretches = find_stretches(population)
    return tuple(_spike(population, one, stretches.usual_ns / 1e6) for one in reversed(stretches.found))


def _spike(population: Population, stretch: Interval, usual_p95_ms: float) -> Spike:
    """One stretch with its figures."""
    own = population.arrived_in(*stretch).latency_ns
    p95, p99 = (np.quantile(own, [0.95, 0.99]) / 1e6).tolist()
    return Spike(*stretch, requests=len(own), p95_ms=p95, p99_ms=p99, usual_p95_ms=usual_p95_ms)
