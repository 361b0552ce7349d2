"""What moved between tiers and how long that took; and what getting KV back cost beside computing it again."""

from __future__ import annotations

from typing import Final

import duckdb
import msgspec
from kvtrail_schema.enums import Reason, Tier
from kvtrail_schema.kinds import Kind

from kvtrail_collector.projections import OpOutcome
from kvtrail_collector.questions.scope import IN_NAMESPACES, IN_STREAMS, Chosen
from kvtrail_collector.questions.tier_levels import TierLevels
from kvtrail_collector.questions.words import tier_name

_QUANTILES: Final = "[0.5, 0.95, 0.99]"
_MOVES: Final = f"""
SELECT src, dst, count(*), count(*) FILTER (outcome = {OpOutcome.FAILED.value}),
    count(*) FILTER (outcome = {OpOutcome.OPEN.value}), sum("bytes")::UBIGINT,
    quantile_cont((closed_ns - queued_ns) / 1e6, {_QUANTILES}) FILTER (outcome = {OpOutcome.DONE.value}),
    quantile_cont(queue_ns / 1e6, 0.99), quantile_cont(io_ns / 1e6, 0.99)
FROM ops WHERE {IN_STREAMS} AND src IS NOT NULL AND dst IS NOT NULL AND outcome <> {OpOutcome.SKIPPED.value}
    AND coalesce(queued_ns, closed_ns) >= $start_ns AND coalesce(queued_ns, closed_ns) < $end_ns
GROUP BY src, dst ORDER BY src, dst
"""  # noqa: S608  # constants of ours
_OWN: Final = f"""
own AS (SELECT stream_id, req FROM requests WHERE {IN_STREAMS} AND {IN_NAMESPACES}
    AND arrived_ns >= $start_ns AND arrived_ns < $end_ns)
"""  # noqa: S608  # constants of ours
# Loads side by side take their time once, and what lies between two restores is no restore; loads that a prefetch made are
# nobody's wait.
_RESTORE: Final = f"""
WITH {_OWN}, parts AS (
    SELECT stream_id, req, closed_ns, CASE WHEN queued_ns IS NOT NULL THEN greatest(queued_ns, max(closed_ns) OVER (
        PARTITION BY stream_id, req ORDER BY queued_ns, closed_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )) END AS from_ns
    FROM ops WHERE {IN_STREAMS} AND req IS NOT NULL AND prefetch IS NULL AND src > dst AND outcome = {OpOutcome.DONE.value}
), loads AS (
    SELECT stream_id, req, sum(closed_ns - from_ns) FILTER (closed_ns >= from_ns) AS ns FROM parts GROUP BY ALL
), sizes AS (
    SELECT stream_id, req, sum(tokens) AS tokens FROM events
    WHERE {IN_STREAMS} AND kind = {Kind.SWAP_IN_LOADED.value} AND dst = {Tier.GPU.value} AND prefetch IS NULL GROUP BY ALL
), costs AS (SELECT ns, tokens FROM own JOIN loads USING (stream_id, req) LEFT JOIN sizes USING (stream_id, req))
"""  # noqa: S608  # constants of ours
# A step is shared by its chunks in the measure of their tokens, as in the ledger.
_RECOMPUTE: Final = f"""
WITH {_OWN}, steps AS (
    SELECT stream_id, step, max(t_ns) - min(t_ns) AS ns, max(tokens) AS tokens FROM events
    WHERE {IN_STREAMS} AND kind IN ({Kind.STEP_STARTED.value}, {Kind.STEP_FINISHED.value}) GROUP BY ALL
), chunks AS (
    SELECT stream_id, req, step, tokens FROM events
    WHERE {IN_STREAMS} AND kind = {Kind.PREFILL_CHUNK.value} AND reason <> {Reason.NEW.value}
), costs AS (
    SELECT sum(steps.ns * chunks.tokens / greatest(steps.tokens, chunks.tokens, 1)) AS ns, sum(chunks.tokens) AS tokens
    FROM own JOIN chunks USING (stream_id, req) JOIN steps USING (stream_id, step) GROUP BY stream_id, req
)
"""  # noqa: S608  # constants of ours
_COST: Final = f"""
SELECT count(*), coalesce(sum(tokens), 0)::UBIGINT, quantile_cont(ns / 1e6, {_QUANTILES}),
    quantile_cont(ns / 1e3 / nullif(tokens, 0), {_QUANTILES}) FROM costs
"""  # noqa: S608  # constants of ours


_MoveRow = tuple[int, int, int, int, int, int | None, list[float] | None, float | None, float | None]


class Quantiles(msgspec.Struct, frozen=True):
    """Three percentiles in the unit of their place; None where nothing was measured."""

    p50: float | None
    p95: float | None
    p99: float | None


class Move(msgspec.Struct, frozen=True):
    """Transfers from one tier to another: how many, how large, and how long each took from its queue to its end."""

    src: str
    dst: str
    ops: int
    failed: int
    open: int
    bytes: int
    total_ms: Quantiles
    queue_p99_ms: float | None
    io_p99_ms: float | None


class Cost(msgspec.Struct, frozen=True):
    """What one way to get KV cost those requests that took it, in all and a token."""

    requests: int
    tokens: int
    ms: Quantiles
    us_per_token: Quantiles


class Tiers(msgspec.Struct, frozen=True):
    """Tiers of an engine. Levels and moves are of all tenants: tiers are shared; costs are of the scope's requests."""

    levels: TierLevels
    moves: list[Move]
    restore: Cost
    recompute: Cost
    device: str | None = None
    schema: int = 1


def moves(cursor: duckdb.DuckDBPyConnection, chosen: Chosen) -> list[Move]:
    """Transfers by where they went. One pass over the ops."""
    values = {"streams": chosen.streams, "start_ns": chosen.start_ns, "end_ns": chosen.end_ns}
    return [_move(row) for row in cursor.execute(_MOVES, values).fetchall()]


def restore_cost(cursor: duckdb.DuckDBPyConnection, chosen: Chosen) -> Cost:
    """What loading cost the requests that waited for it."""
    return _cost(cursor, _RESTORE, chosen)


def recompute_cost(cursor: duckdb.DuckDBPyConnection, chosen: Chosen) -> Cost:
    """What computing again cost the requests that did."""
    return _cost(cursor, _RECOMPUTE, chosen)


def _cost(cursor: duckdb.DuckDBPyConnection, sql: str, chosen: Chosen) -> Cost:
    """One cost."""
    row = cursor.execute(sql + _COST, chosen.values()).fetchone()
    assert row is not None, "an aggregate always has a row"
    return Cost(row[0], row[1], quantiles(row[2]), quantiles(row[3]))


def quantiles(values: list[float] | None) -> Quantiles:
    """Three percentiles, or none."""
    return Quantiles(*values) if values else Quantiles(None, None, None)


def _move(row: _MoveRow) -> Move:
    """One way."""
    src, dst, ops, failed, left, size, total, queue, io = row
    return Move(tier_name(src), tier_name(dst), ops, failed, left, size or 0, quantiles(total), queue, io)
