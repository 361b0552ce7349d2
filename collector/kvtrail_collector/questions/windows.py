"""What happened in two windows, for verdicts and blame: the rows that they look at, and their transfers, one row each."""

from __future__ import annotations

from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
from kvtrail_schema.identity import Stream
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts_build import Recording, recording_of_parts
from kvtrail_collector.facts_rows import IntArray, Interval, rows_of_selection
from kvtrail_collector.ledger_rows import holes_of, identity_of, last_ns
from kvtrail_collector.questions.population import StoredPopulation
from kvtrail_collector.questions.rows import StreamRow
from kvtrail_collector.questions.window_ops import numbers, places_of, window_ops

MARGIN_NS: Final = 1_000_000_000
"""How long around the requests' lives others are looked at."""

_DECLARED: Final = numbers(Kind.NAMESPACE_DECLARED, Kind.MANIFEST_DECLARED)
_PLAIN: Final = numbers(
    *(Kind.REQUEST_ARRIVED, Kind.REQUEST_WAITING, Kind.REQUEST_ADMITTED, Kind.REQUEST_PREEMPTED, Kind.REQUEST_RESUMED),
    *(Kind.REQUEST_FIRST_TOKEN, Kind.REQUEST_FINISHED, Kind.REQUEST_CANCELLED, Kind.REQUEST_REJECTED),
    *(Kind.LOOKUP_FINISHED, Kind.PREFILL_CHUNK, Kind.COPY_WAITED, Kind.STEP_STARTED, Kind.STEP_FINISHED),
)
_OUTCOMES: Final = numbers(Kind.PREFETCH_USED, Kind.PREFETCH_WASTED, Kind.PREFETCH_CANCELLED)
_AHEAD: Final = f"{numbers(Kind.PREFETCH_ISSUED, Kind.PREFETCH_READY)}, {_OUTCOMES}"
_COLUMNS: Final = (
    "stream_id, kind, seq, t_ns, ns, req, op, prefetch, step, reason, tokens, prefill_tokens, wait_ns, duration_ns"
)

_ROWS: Final = f"""
WITH near AS NOT MATERIALIZED (
    SELECT * FROM events WHERE stream_id IN (SELECT unnest($streams::INTEGER[])) AND t_ns BETWEEN $start_ns AND $end_ns
), ahead AS (SELECT {_COLUMNS}, block FROM near WHERE kind IN ({_AHEAD}))
SELECT {_COLUMNS}, NULL::UBIGINT AS block, CASE WHEN kind = {Kind.REQUEST_ARRIVED.value} THEN "text" END AS "text" FROM near
WHERE kind IN ({_PLAIN})
UNION ALL SELECT *, NULL FROM ahead
UNION ALL SELECT {_COLUMNS}, block, NULL FROM near
WHERE kind = {Kind.SWAP_IN_QUEUED.value} AND block IN (SELECT block FROM ahead)
UNION ALL SELECT {_COLUMNS}, block, NULL FROM events
WHERE stream_id IN (SELECT unnest($streams::INTEGER[])) AND kind IN ({_OUTCOMES}) AND t_ns > $end_ns
UNION ALL SELECT {_COLUMNS}, NULL, "text" FROM events
WHERE stream_id IN (SELECT unnest($streams::INTEGER[])) AND kind IN ({_DECLARED})
"""  # noqa: S608  # constants of ours
"""What became of prefetches is told whenever it is: whose work one waited for hangs on it."""


def windows_recording(cursor: duckdb.DuckDBPyConnection, wanted: list[StreamRow], span: Interval) -> Recording:
    """What was recorded in a span of time, as far as ledgers of requests, ops, steps and blame go. Worker thread."""
    known = sorted(wanted, key=identity_of)
    ids, near = [stream.stream_id for stream in known], (span[0] - MARGIN_NS, span[1] + MARGIN_NS)
    asked = {"streams": ids, "start_ns": near[0], "end_ns": near[1]}
    table: pa.Table = cursor.execute(_ROWS, asked).to_arrow_table()
    holes: dict[Stream, list[Interval]] = {identity_of(stream): holes_of(cursor, stream.stream_id) for stream in known}
    now_ns = max((last_ns(cursor, stream.stream_id) for stream in known), default=0)
    ops = window_ops(cursor, ids, list(holes), near)
    return recording_of_parts(rows_of_selection(table, places_of(table, ids), holes), ops, now_ns)


def places_in(recording: Recording, stored: StoredPopulation, wanted: list[StreamRow]) -> IntArray:
    """Where each stored request stands among those of a recording; -1 for one that is not in it."""
    known = {stream: index for index, stream in enumerate(recording.rows.streams)}
    index_of = np.full(max((stream.stream_id for stream in wanted), default=0) + 1, -1)
    for stream in wanted:
        index_of[stream.stream_id] = known.get(identity_of(stream), -1)
    return recording.columns.index.find(index_of[stored.stream_id], stored.req)
