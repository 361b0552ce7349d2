"""What became of prefetched blocks: used, wasted, cancelled or still open; late or not; why, whose, and how much."""

from __future__ import annotations

from typing import Final

import duckdb
import msgspec
from kvtrail_schema.kinds import Kind

from kvtrail_collector.questions.buckets import bucket_ns
from kvtrail_collector.questions.scope import IN_NAMESPACES, IN_STREAMS, Chosen
from kvtrail_collector.questions.words import reason_name, tier_name

_SKIPPED: Final = Kind.PREFETCH_SKIPPED.value
_ENDS: Final = f"{Kind.PREFETCH_USED.value}, {Kind.PREFETCH_WASTED.value}, {Kind.PREFETCH_CANCELLED.value}"
_KINDS: Final = (
    f"{Kind.PREFETCH_ISSUED.value}, {Kind.PREFETCH_COMPLETED.value}, {Kind.PREFETCH_READY.value}, {_ENDS}, "
    f"{Kind.PREFETCH_DEADLINE_MISSED.value}"
)
MOST_LOSSES: Final = 200
# One row for each block of each prefetch, from all that was said about it; its rows, or its first request, say whose it is.
_BLOCKS: Final = f"""
WITH told AS (
    SELECT stream_id, prefetch, block,
        min(t_ns) FILTER (kind = {Kind.PREFETCH_ISSUED.value}) AS issued_ns,
        min(t_ns) FILTER (kind = {Kind.PREFETCH_COMPLETED.value}) AS completed_ns,
        min(t_ns) FILTER (kind = {Kind.PREFETCH_READY.value}) AS ready_ns,
        arg_min(kind, t_ns) FILTER (kind IN ({_ENDS})) AS ended,
        arg_min(reason, t_ns) FILTER (kind IN ({_ENDS})) AS reason,
        count(*) FILTER (kind = {Kind.PREFETCH_DEADLINE_MISSED.value}) > 0 AS missed,
        max("bytes") AS "bytes", min(src) AS src, min(req) AS req, min(ns) AS own_ns
    FROM events WHERE kind IN ({_KINDS}) AND prefetch IS NOT NULL AND {IN_STREAMS} GROUP BY ALL
), blocks AS (
    SELECT told.*, coalesce(own_ns, requests.ns) AS ns FROM told LEFT JOIN requests USING (stream_id, req)
    WHERE issued_ns >= $start_ns AND issued_ns < $end_ns
        AND {IN_NAMESPACES.replace("ns IN", "coalesce(own_ns, requests.ns) IN")}
)
"""  # noqa: S608  # constants of ours
_FIGURES: Final = f"""
    count(*), count(completed_ns), count(ready_ns),
    count(*) FILTER (ended = {Kind.PREFETCH_USED.value}), count(*) FILTER (ended = {Kind.PREFETCH_WASTED.value}),
    count(*) FILTER (ended = {Kind.PREFETCH_CANCELLED.value}), count(*) FILTER (missed),
    coalesce(sum("bytes"), 0)::UBIGINT, coalesce(sum("bytes") FILTER (ended = {Kind.PREFETCH_WASTED.value}), 0)::UBIGINT
"""  # constants of ours
_TOTAL: Final = f"{_BLOCKS} SELECT {_FIGURES} FROM blocks"  # noqa: S608  # constants of ours
_REASONS: Final = f"""
{_BLOCKS} SELECT ended, reason, src, ns, count(*), coalesce(sum("bytes"), 0)::UBIGINT FROM blocks
WHERE ended IS NOT NULL AND ended <> {Kind.PREFETCH_USED.value} GROUP BY ALL ORDER BY count(*) DESC
"""  # noqa: S608  # constants of ours
_SERIES: Final = f"""
{_BLOCKS} SELECT issued_ns - issued_ns % $bucket_ns AS start_ns, start_ns + max(wall_ns - monotonic_ns), {_FIGURES}
FROM blocks JOIN stream_marks USING (stream_id) GROUP BY start_ns ORDER BY start_ns
"""  # noqa: S608  # constants of ours
# What the device did for a prefetch is shared by its blocks; what requests stood still for its transfers was not hidden.
_TIMES: Final = f"""
{_BLOCKS}, stood AS (
    SELECT stream_id, op, sum(wait_ns) AS wait_ns FROM events
    WHERE kind = {Kind.COPY_WAITED.value} AND op IS NOT NULL AND {IN_STREAMS} GROUP BY ALL
), served AS (
    SELECT stream_id, prefetch, sum(coalesce(io_ns, 0) + coalesce(copy_ns, 0)) AS service_ns,
        sum(coalesce(wait_ns, 0)) AS wait_ns
    FROM ops LEFT JOIN stood USING (stream_id, op) WHERE prefetch IS NOT NULL AND {IN_STREAMS} GROUP BY ALL
), shared AS (
    SELECT ended, coalesce(service_ns, 0) / count(*) OVER own AS service_ns, coalesce(wait_ns, 0) / count(*) OVER own AS wait_ns
    FROM blocks LEFT JOIN served USING (stream_id, prefetch) WINDOW own AS (PARTITION BY stream_id, prefetch)
)
SELECT coalesce(sum(greatest(service_ns - wait_ns, 0)) FILTER (ended = {Kind.PREFETCH_USED.value}), 0)::BIGINT,
    coalesce(sum(wait_ns) FILTER (ended = {Kind.PREFETCH_USED.value}), 0)::BIGINT,
    coalesce(sum(service_ns) FILTER (ended <> {Kind.PREFETCH_USED.value}), 0)::BIGINT FROM shared
"""  # noqa: S608  # constants of ours
_EXTENT: Final = f"""
SELECT min(t_ns), max(t_ns) FROM events
WHERE kind = {Kind.PREFETCH_ISSUED.value} AND {IN_STREAMS} AND t_ns >= $start_ns AND t_ns < $end_ns
"""  # noqa: S608  # constants of ours
_NOT_ISSUED: Final = f"""
SELECT reason, count(*) FROM events
WHERE kind = {_SKIPPED} AND {IN_STREAMS} AND t_ns >= $start_ns AND t_ns < $end_ns GROUP BY reason ORDER BY count(*) DESC
"""  # noqa: S608  # constants of ours


class PrefetchFigures(msgspec.Struct, frozen=True):
    """Blocks that were prefetched, and what became of them; those that ended in nothing are still open."""

    issued: int
    completed: int
    ready: int
    used: int
    wasted: int
    cancelled: int
    deadline_missed: int
    bytes: int
    wasted_bytes: int


class PrefetchTimes(msgspec.Struct, frozen=True):
    """Device time of used prefetches that nobody waited for, what requests did wait for them, and what those in vain took."""

    hidden_ns: int
    waited_ns: int
    caused_ns: int


class PrefetchLoss(msgspec.Struct, frozen=True):
    """Blocks that were of no use, for one reason, from one tier, for one tenant."""

    outcome: str
    reason: str | None
    tier: str | None
    tenant: str | None
    blocks: int
    bytes: int


class PrefetchBucket(msgspec.Struct, frozen=True):
    """The blocks that were issued in one bucket of time."""

    start_ns: int
    wall_ns: int
    figures: PrefetchFigures


class NotIssued(msgspec.Struct, frozen=True):
    """Blocks that the engine would have fetched ahead, and did not."""

    reason: str | None
    blocks: int


class PrefetchFlow(msgspec.Struct, frozen=True):
    """Prefetches in all, over time, and where they were in vain; `losses_left_out` is how many more rows of these there are."""

    bucket_ms: int
    total: PrefetchFigures
    times: PrefetchTimes
    losses: list[PrefetchLoss]
    not_issued: list[NotIssued]
    series: list[PrefetchBucket]
    device: str | None = None
    schema: int = 1
    losses_left_out: int = 0


def prefetch_flow(
    cursor: duckdb.DuckDBPyConnection, chosen: Chosen, tenant_of: dict[int, str | None], points: int, device: str | None
) -> PrefetchFlow:
    """What became of the prefetches that were issued in a scope. Six passes over the few kinds that tell it."""
    between = {"streams": chosen.streams, "start_ns": chosen.start_ns, "end_ns": chosen.end_ns}
    width_ns = bucket_ns(cursor.execute(_EXTENT, between).fetchone(), points)
    values = chosen.values()
    total = cursor.execute(_TOTAL, values).fetchone()
    times = cursor.execute(_TIMES, values).fetchone()
    assert total is not None, "an aggregate always has a row"
    assert times is not None, "as above"
    series = cursor.execute(_SERIES, {**values, "bucket_ns": width_ns}).fetchall()
    reasons = cursor.execute(_REASONS, values).fetchall()
    return PrefetchFlow(
        bucket_ms=width_ns // 1_000_000,
        total=PrefetchFigures(*total),
        times=PrefetchTimes(*times),
        losses=[_loss(row, tenant_of) for row in reasons[:MOST_LOSSES]],
        not_issued=[NotIssued(reason_name(row[0]), row[1]) for row in cursor.execute(_NOT_ISSUED, between).fetchall()],
        series=[PrefetchBucket(row[0], row[1], PrefetchFigures(*row[2:])) for row in series],
        device=device,
        losses_left_out=max(len(reasons) - MOST_LOSSES, 0),
    )


def _loss(row: tuple[int, int | None, int | None, int | None, int, int], tenant_of: dict[int, str | None]) -> PrefetchLoss:
    """One row as an answer."""
    ended, reason, src, ns, blocks, size = row
    outcome = "wasted" if ended == Kind.PREFETCH_WASTED.value else "cancelled"
    tier = None if src is None else tier_name(src)
    return PrefetchLoss(outcome, reason_name(reason), tier, tenant_of.get(ns) if ns is not None else None, blocks, size)
