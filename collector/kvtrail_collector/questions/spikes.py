"""Which stretches of time were slow, and how slow."""

from __future__ import annotations

from typing import Final

import duckdb
import msgspec
import numpy as np

from kvtrail_collector.facts_rows import IntArray, Interval
from kvtrail_collector.population import Population
from kvtrail_collector.questions.clocks import clock_offset_ns
from kvtrail_collector.questions.population import stored_population
from kvtrail_collector.questions.scope import EARLIEST_NS, LATEST_NS, Scope, streams_of
from kvtrail_collector.window import warm_up_end_ns
from kvtrail_collector.window_spikes import find_spikes

_SEED: Final = 0


class Spike(msgspec.Struct, frozen=True):
    """One slow stretch of arrivals, [start, end), and how slow; `usual_p95_ms` is of the requests outside all of them."""

    start_ns: int
    end_ns: int
    requests: int
    p95_ms: float
    p99_ms: float
    usual_p95_ms: float


class Spikes(msgspec.Struct, frozen=True):
    """At most five spikes, the latest first. Monotonic times plus `clock_offset_ns` are wall times."""

    spikes: tuple[Spike, ...]
    clock_offset_ns: int | None = None
    device: str | None = None
    schema: int = 1


def spikes(cursor: duckdb.DuckDBPyConnection, scope: Scope, device: str | None) -> Spikes:
    """The spikes of an engine and rank in a stretch of time, without its warm-up. Worker thread; a second at most, and the
    reading of the kept ledgers.
    """
    wanted = streams_of(cursor, scope)
    start_ns = EARLIEST_NS if scope.start_ns is None else scope.start_ns
    end_ns = LATEST_NS if scope.end_ns is None else scope.end_ns
    own = stored_population(cursor, wanted).population.arrived_in(start_ns, end_ns)
    found = _spikes(own) if len(own) else ()
    return Spikes(found, clock_offset_ns(cursor, wanted), device)


def _spikes(population: Population) -> tuple[Spike, ...]:
    """The spikes of requests, of which there are some."""
    warm = population.arrived_in(warm_up_end_ns(population), int(population.arrived_ns[-1]) + 1)
    found = find_spikes(warm.arrived_ns, warm.latency_ns, seed=_SEED)
    outside = np.ones(len(warm), dtype=np.bool_)
    for low, high in (_places(warm, one) for one in found):
        outside[low:high] = False
    usual_ms = _ms(warm.latency_ns[outside], 0.95)
    return tuple(_spike(warm, one, usual_ms) for one in reversed(found))


def _spike(population: Population, stretch: Interval, usual_p95_ms: float) -> Spike:
    """One stretch with its figures."""
    low, high = _places(population, stretch)
    own = population.latency_ns[low:high]
    return Spike(*stretch, requests=high - low, p95_ms=_ms(own, 0.95), p99_ms=_ms(own, 0.99), usual_p95_ms=usual_p95_ms)


def _places(population: Population, stretch: Interval) -> tuple[int, int]:
    """Where a stretch begins and ends among the requests."""
    low, high = np.searchsorted(population.arrived_ns, stretch).tolist()
    return low, high


def _ms(latency_ns: IntArray, quantile: float) -> float:
    """A quantile in milliseconds; 0 of none."""
    return float(np.quantile(latency_ns, quantile)) / 1e6 if len(latency_ns) else 0.0
