"""Transfers of which rows came late: put down by the commit, and forgotten once the requests that they touch are touched.

Whose they are, events say: requests that name a transfer, that waited for it, or that used its prefetch. To look for those
takes longer than a commit may; so whoever computes or reads ledgers does it (`linked_requests`).
"""

from __future__ import annotations

from typing import Final

import duckdb
import pyarrow as pa
from kvtrail_schema.kinds import Kind

from kvtrail_collector.projections.projection import numbers

LATE_OPS: Final = "late_ops_in"
_PARTS: Final = " + ".join(
    f"coalesce({name}, 0)::HUGEINT" for name in ("queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns")
)
_BEHIND: Final = f"CASE WHEN coalesce(queued_ns, started_ns) IS NOT NULL OR {_PARTS} > 0 THEN closed_ns - ({_PARTS}) END"
# A transfer of which neither beginning nor length is known may have begun at any time.
TOUCH_OPS: Final = f"""
INSERT INTO touched_ops BY NAME
SELECT DISTINCT stream_id, op, 1 + (SELECT coalesce(max(touch), 0) FROM touched_ops) AS touch
FROM {LATE_OPS} AS late LEFT JOIN ops USING (stream_id, op)
WHERE coalesce(least(queued_ns, started_ns, {_BEHIND}), {-(2**63)}) < kept_ns
"""  # noqa: S608  # names of ours
"""Put down those of some transfers that began before the time that stands with each."""

_SWAPS: Final = numbers(
    *(Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_STARTED, Kind.SWAP_IN_LOADED, Kind.SWAP_IN_FAILED),
    *(Kind.SWAP_OUT_QUEUED, Kind.SWAP_OUT_STARTED, Kind.SWAP_OUT_WRITTEN, Kind.SWAP_OUT_FAILED, Kind.SWAP_OUT_SKIPPED),
)
_LINKED: Final = f"""
WITH late AS MATERIALIZED (SELECT DISTINCT stream_id, op FROM touched_ops WHERE stream_id IN (SELECT unnest(?::INTEGER[]))),
named AS MATERIALIZED (
    SELECT stream_id, req, prefetch FROM events SEMI JOIN late USING (stream_id, op)
    WHERE kind IN ({_SWAPS}, {Kind.COPY_WAITED.value}) AND op IS NOT NULL
), fetched AS MATERIALIZED (SELECT DISTINCT stream_id, prefetch FROM named WHERE prefetch IS NOT NULL)
SELECT stream_id, req FROM named WHERE req IS NOT NULL
UNION
SELECT stream_id, req FROM events SEMI JOIN fetched USING (stream_id, prefetch)
WHERE kind = {Kind.PREFETCH_USED.value} AND prefetch IS NOT NULL AND req IS NOT NULL
"""  # noqa: S608  # as above
_ANY: Final = "SELECT DISTINCT stream_id FROM touched_ops"
_LAST: Final = "SELECT coalesce(max(touch), 0) FROM touched_ops"
_TOUCH: Final = """
INSERT INTO touched_requests BY NAME
SELECT stream_id, req, 1 + (SELECT coalesce(max(touch), 0) FROM touched_requests) AS touch FROM linked_in
"""
_FORGET: Final = "DELETE FROM touched_ops WHERE touch <= ?"


def streams_with_late_ops(cursor: duckdb.DuckDBPyConnection) -> list[int]:
    """The streams of which transfers were put down. Cheap."""
    return [int(row[0]) for row in cursor.execute(_ANY).fetchall()]


def last_touch(cursor: duckdb.DuckDBPyConnection) -> int:
    """The newest touch of a transfer; 0 where none is put down."""
    row = cursor.execute(_LAST).fetchone()
    return int(row[0]) if row else 0


def linked_requests(cursor: duckdb.DuckDBPyConnection, stream_ids: list[int]) -> pa.Table:
    """The requests that hang on transfers which were put down: a table of `stream_id` and `req`. Worker thread."""
    return cursor.execute(_LINKED, [stream_ids]).to_arrow_table()


def settle_ops(connection: duckdb.DuckDBPyConnection, linked: pa.Table, until: int) -> None:
    """Touch the requests that hang on transfers, and forget those up to a touch. To be run by `Store.run`."""
    connection.register("linked_in", linked)
    try:
        connection.execute(_TOUCH)
    finally:
        connection.unregister("linked_in")
    connection.execute(_FORGET, [until])
