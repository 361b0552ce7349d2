"""What became of every prefetched block: issued, completed, ready, used, wasted by reason; time hidden against time caused.

A question over the same tables that rules are asked of; about a second for ten million events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import duckdb

from kvtrail_collector.detectors.rule import Cell, Row
from kvtrail_collector.detectors.scene import Bounds, Scene
from kvtrail_collector.ledger_parts import TIER_NAMES
from kvtrail_collector.loss_shapes import Loss
from kvtrail_collector.prefetch_shapes import PrefetchAccount, PrefetchRow

_ROWS: Final = """
WITH outcome AS (
    SELECT own.*, coalesce(own.ns, request.ns) AS tenant_ns,
        CASE WHEN used_ns IS NOT NULL THEN 'used' WHEN wasted_ns IS NOT NULL THEN 'wasted'
            WHEN cancelled_ns IS NOT NULL THEN 'cancelled' ELSE 'pending' END AS ending
    FROM window_prefetches AS own LEFT JOIN window_requests AS request
        ON request.stream_id = own.stream_id AND request.req = coalesce(user_req, issuer)
    WHERE issued_ns IS NOT NULL
), stood AS (
    SELECT stream_id, op, sum(wait_ns) AS wait_ns FROM window_events WHERE kind = kind_no('copy_waited') AND op IS NOT NULL
    GROUP BY stream_id, op
), served AS (
    SELECT own.stream_id, own.prefetch, sum(coalesce(io_ns, 0) + coalesce(copy_ns, 0)) AS service_ns,
        sum(coalesce(stood.wait_ns, 0)) AS wait_ns
    FROM window_ops AS own LEFT JOIN stood ON stood.stream_id = own.stream_id AND stood.op = own.op
    WHERE own.prefetch IS NOT NULL GROUP BY own.stream_id, own.prefetch
), shared AS (
    SELECT outcome.*, streams.engine,
        coalesce(service_ns, 0) / count(*) OVER (PARTITION BY outcome.stream_id, outcome.prefetch) AS service_ns,
        coalesce(wait_ns, 0) / count(*) OVER (PARTITION BY outcome.stream_id, outcome.prefetch) AS wait_ns
    FROM outcome JOIN streams USING (stream_id)
    LEFT JOIN served ON served.stream_id = outcome.stream_id AND served.prefetch = outcome.prefetch
)
SELECT engine, src AS tier, tenant_ns AS ns, count(*) AS issued, count(completed_ns) AS completed, count(ready_ns) AS ready,
    count(*) FILTER (ending = 'used') AS used, count(*) FILTER (ending = 'wasted') AS wasted,
    count(*) FILTER (ending = 'cancelled') AS cancelled, count(*) FILTER (ending = 'pending') AS pending,
    count(missed_ns) AS deadlines_missed, coalesce(sum(bytes), 0)::BIGINT AS bytes,
    coalesce(sum(bytes) FILTER (ending = 'used'), 0)::BIGINT AS used_bytes,
    coalesce(sum(greatest(service_ns - wait_ns, 0)) FILTER (ending = 'used'), 0)::BIGINT AS hidden_ns,
    coalesce(sum(wait_ns) FILTER (ending = 'used'), 0)::BIGINT AS waited_ns,
    coalesce(sum(service_ns) FILTER (ending IN ('wasted', 'cancelled')), 0)::BIGINT AS caused_ns
FROM shared GROUP BY ALL ORDER BY engine, tier, ns
"""
_WASTED: Final = """
SELECT streams.engine, src AS tier, coalesce(own.ns, request.ns) AS ns, reason_name(wasted_reason) AS reason, count(*) AS blocks
FROM window_prefetches AS own JOIN streams USING (stream_id) LEFT JOIN window_requests AS request
    ON request.stream_id = own.stream_id AND request.req = coalesce(user_req, issuer)
WHERE issued_ns IS NOT NULL AND wasted_ns IS NOT NULL AND used_ns IS NULL GROUP BY ALL ORDER BY blocks DESC
"""
_SKIPPED: Final = """
SELECT reason_name(reason) AS reason, count(*) AS blocks FROM window_events WHERE kind = kind_no('prefetch_skipped')
GROUP BY reason ORDER BY blocks DESC
"""
_TIERS: Final = {tier.value: name for tier, name in TIER_NAMES.items()}
_Key = tuple[Cell, Cell, Cell]


def prefetch_account(
    cursor: duckdb.DuckDBPyConnection, bounds: Bounds | None = None, device: str | None = None
) -> PrefetchAccount:
    """The account of a stretch of time. Runs on a worker thread, with a cursor of its own; makes temporary tables only."""
    scene = Scene(cursor, Loss((), balanced=True), bounds)
    reasons: dict[_Key, dict[str, int]] = {}
    for row in scene.ask(_WASTED):
        reasons.setdefault(_key(row), {})[str(row["reason"])] = _whole(row["blocks"])
    rows = tuple(_row(scene, row, reasons.get(_key(row), {})) for row in scene.ask(_ROWS))
    skipped = {str(row["reason"]): _whole(row["blocks"]) for row in scene.ask(_SKIPPED)}
    return PrefetchAccount(rows, skipped, device)


def _key(row: Row) -> _Key:
    """What an account is kept by."""
    return (row["engine"], row["tier"], row["ns"])


def _row(scene: Scene, row: Row, wasted_by: Mapping[str, int]) -> PrefetchRow:
    """One row of the account."""
    counts = {name: _whole(value) for name, value in row.items() if name not in {"engine", "tier", "ns"}}
    tier = _TIERS.get(_whole(row["tier"])) if row["tier"] is not None else None
    return PrefetchRow(
        engine=str(row["engine"]), tier=tier, tenant=scene.tenant(row["ns"]), wasted_by=dict(wasted_by), **counts
    )


def _whole(value: Cell) -> int:
    """A count."""
    return int(str(value))
