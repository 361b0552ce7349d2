"""How fast requests were answered over time: time to first token, per further token, and the share within an objective."""

from __future__ import annotations

from typing import Final, NamedTuple

import duckdb
import msgspec

from kvtrail_collector.questions.buckets import bucket_ns
from kvtrail_collector.questions.scope import IN_NAMESPACES, IN_STREAMS, Chosen

_OWN: Final = f"""
FROM requests JOIN stream_marks USING (stream_id)
WHERE {IN_STREAMS} AND {IN_NAMESPACES} AND arrived_ns >= $start_ns AND arrived_ns < $end_ns
"""  # constants of ours
_EXTENT: Final = f"SELECT min(arrived_ns), max(arrived_ns) {_OWN}"  # constants of ours
_MEASURES: Final = f"""
WITH own AS (
    SELECT arrived_ns - arrived_ns % $bucket_ns AS start_ns, wall_ns - monotonic_ns AS offset_ns,
        (first_token_ns - arrived_ns) / 1e6 AS ttft_ms,
        CASE WHEN output_tokens > 1 THEN (ended_ns - first_token_ns) / 1e6 / (output_tokens - 1) END AS tpot_ms {_OWN}
)
"""  # constants of ours
# A request without a first token misses its objective once its time so far does; whether it has is not looked at: it counts.
_FIGURES: Final = """
    count(*), count(*) - count(ttft_ms),
    quantile_cont(ttft_ms, [0.5, 0.95, 0.99]), quantile_cont(tpot_ms, [0.5, 0.95, 0.99]),
    avg((ttft_ms IS NOT NULL AND ttft_ms <= $ttft_ms AND (tpot_ms IS NULL OR tpot_ms <= $tpot_ms))::INT)
"""
_SERIES: Final = f"""
{_MEASURES} SELECT start_ns, start_ns + max(offset_ns), {_FIGURES} FROM own GROUP BY start_ns ORDER BY start_ns
"""  # noqa: S608  # constants of ours
_TOTAL: Final = f"{_MEASURES} SELECT {_FIGURES} FROM own"  # noqa: S608  # constants of ours


class Objective(NamedTuple):
    """What counts as good: a first token, and each further one, within so many milliseconds."""

    ttft_ms: float
    tpot_ms: float


class Percentiles(msgspec.Struct, frozen=True):
    """Percentiles in milliseconds; None where nothing was measured."""

    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class LatencyFigures(msgspec.Struct, frozen=True):
    """Some requests; `within` is the share of them that met the objective, None where there are none."""

    requests: int
    censored: int
    ttft: Percentiles
    tpot: Percentiles
    within: float | None


class LatencyBucket(msgspec.Struct, frozen=True):
    """The requests that arrived in one bucket."""

    start_ns: int
    wall_ns: int
    figures: LatencyFigures


class Latency(msgspec.Struct, frozen=True):
    """Latency over time and in all; buckets in which nothing arrived are left out."""

    bucket_ms: int
    objective_ttft_ms: float
    objective_tpot_ms: float
    total: LatencyFigures
    series: list[LatencyBucket]
    device: str | None = None
    schema: int = 1


def latency(
    cursor: duckdb.DuckDBPyConnection, chosen: Chosen, objective: Objective, points: int, device: str | None
) -> Latency:
    """Latency of a scope in at most so many buckets. Three passes over its requests."""
    extent = cursor.execute(_EXTENT, chosen.values()).fetchone()
    width_ns = bucket_ns(extent, points)
    values = {**chosen.values(), **objective._asdict(), "bucket_ns": width_ns}
    series = [LatencyBucket(row[0], row[1], _figures(row[2:])) for row in cursor.execute(_SERIES, values).fetchall()]
    total = cursor.execute(_TOTAL, values).fetchone()
    assert total is not None, "an aggregate always has a row"
    return Latency(width_ns // 1_000_000, *objective, total=_figures(total), series=series, device=device)


def _figures(row: tuple[int, int, list[float] | None, list[float] | None, float | None]) -> LatencyFigures:
    """A row of figures."""
    requests, censored, ttft, tpot, within = row
    return LatencyFigures(requests, censored, _percentiles(ttft), _percentiles(tpot), within)


def _percentiles(values: list[float] | None) -> Percentiles:
    """Three percentiles, or none."""
    return Percentiles(*values) if values else Percentiles(None, None, None)
