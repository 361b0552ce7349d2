"""How many requests felt a time of at most so much: of those that are stored, and of those that expired, which still count.

A counter that falls when old requests expire looks to Prometheus like a process that started anew.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import duckdb
import sqlalchemy as sa

from kvtrail_collector.store.tables import METADATA

EXPIRED_LATENCIES: Final = sa.Table(
    "expired_latencies",
    METADATA,
    sa.Column("engine", sa.Text, nullable=False),
    sa.Column("measure", sa.Text, nullable=False),
    sa.Column("at_most_ms", sa.Double, nullable=False),
    sa.Column("requests", sa.BigInteger, nullable=False),
    sa.Column("total_ns", sa.BigInteger, nullable=False),
)
"""What expired, a few rows each time; those of one engine, measure and bound add up.

Times are whole numbers: a sum must never fall, by whatever little.
"""


class Measure(NamedTuple):
    """What is measured of a request, in ns, and the bounds that it is counted by; all are below the last."""

    name: str
    sql: str
    bounds_ms: tuple[float, ...]


# From what a cached prefix takes to what nobody waits for: steps of about two and a half.
TTFT: Final = Measure(
    "ttft",
    "first_token_ns - arrived_ns",
    (2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, math.inf),
)
TPOT: Final = Measure(
    "tpot",
    "CASE WHEN output_tokens > 1 THEN (ended_ns - first_token_ns) // (output_tokens - 1) END",
    (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, math.inf),
)
MEASURES: Final = (TTFT, TPOT)


class Count(NamedTuple):
    """How many requests of an engine took at most so long, and how long those took in all."""

    engine: str
    at_most_ms: float
    requests: int
    total_ns: int


def count_latencies(cursor: duckdb.DuckDBPyConnection, measure: Measure) -> list[Count]:
    """All requests ever stored, by engine and bound. Some 10 ms for 100,000 requests."""
    asked = f"""
    SELECT engine, at_most_ms, sum(requests)::BIGINT, sum(total_ns)::BIGINT FROM (
        {_counted(measure, "requests")} UNION ALL
        SELECT engine, at_most_ms, requests, total_ns FROM expired_latencies WHERE measure = '{measure.name}'
    ) GROUP BY engine, at_most_ms HAVING at_most_ms IN (SELECT unnest($bounds::DOUBLE[])) ORDER BY engine, at_most_ms
    """  # noqa: S608  # constants of ours
    return [Count(*row) for row in cursor.execute(asked, {"bounds": measure.bounds_ms}).fetchall()]


def remember_latencies(connection: duckdb.DuckDBPyConnection, gone: str, *, sign: int) -> None:
    """Add what the requests of a table of (stream_id, req) felt to what expired, or take it off with a sign of -1."""
    own = f"(SELECT * FROM requests SEMI JOIN {gone} USING (stream_id, req))"  # noqa: S608  # a name of ours
    for measure in MEASURES:
        connection.execute(
            f"INSERT INTO expired_latencies SELECT engine, '{measure.name}', at_most_ms, {sign} * requests, {sign} * total_ns "  # noqa: S608  # constants of ours
            f"FROM ({_counted(measure, own)})",
            {"bounds": measure.bounds_ms},
        )


def _counted(measure: Measure, requests: str) -> str:
    """The counts of some requests."""
    return f"""
    SELECT engine, at_most_ms, count(*) FILTER (ns <= at_most_ms * 1e6) AS requests,
        coalesce(sum(ns) FILTER (ns <= at_most_ms * 1e6), 0)::BIGINT AS total_ns
    FROM (SELECT engine, {measure.sql} AS ns FROM {requests} AS own JOIN streams USING (stream_id)),
        (SELECT unnest($bounds::DOUBLE[]) AS at_most_ms)
    WHERE ns >= 0 GROUP BY engine, at_most_ms
    """  # noqa: S608  # constants of ours
