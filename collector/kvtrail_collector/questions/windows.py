"""What happened in two windows, for verdicts and blame: the rows that they look at, those of an op added up in the database."""

from __future__ import annotations

from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
from kvtrail_schema.identity import Stream
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts_build import Recording, recording_of_table
from kvtrail_collector.facts_rows import IntArray, Interval
from kvtrail_collector.ledger_rows import holes_of, identity_of, last_ns
from kvtrail_collector.questions.population import StoredPopulation
from kvtrail_collector.questions.rows import StreamRow, named_rows

MARGIN_NS: Final = 1_000_000_000
"""How long around the requests' lives others are looked at."""


def _numbers(*kinds: Kind) -> str:
    """Kinds for SQL."""
    return ", ".join(str(kind.value) for kind in kinds)


_CLOSINGS: Final = _numbers(
    *(Kind.SWAP_IN_LOADED, Kind.SWAP_IN_FAILED, Kind.SWAP_OUT_WRITTEN, Kind.SWAP_OUT_FAILED, Kind.SWAP_OUT_SKIPPED)
)
_BEGINNINGS: Final = _numbers(Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_STARTED, Kind.SWAP_OUT_QUEUED, Kind.SWAP_OUT_STARTED)
_DECLARED: Final = _numbers(Kind.NAMESPACE_DECLARED, Kind.MANIFEST_DECLARED)
_PLAIN: Final = _numbers(
    *(Kind.REQUEST_ARRIVED, Kind.REQUEST_WAITING, Kind.REQUEST_ADMITTED, Kind.REQUEST_PREEMPTED, Kind.REQUEST_RESUMED),
    *(Kind.REQUEST_FIRST_TOKEN, Kind.REQUEST_FINISHED, Kind.REQUEST_CANCELLED, Kind.REQUEST_REJECTED),
    *(Kind.LOOKUP_FINISHED, Kind.PREFILL_CHUNK, Kind.COPY_WAITED, Kind.STEP_STARTED, Kind.STEP_FINISHED),
    *(Kind.PREFETCH_USED, Kind.PREFETCH_WASTED, Kind.PREFETCH_CANCELLED),
)
_PARTS: Final = ("queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns")
_STRUCT: Final = ", ".join(f"{name} := {name}" for name in _PARTS)

_ROWS: Final = f"""
WITH near AS NOT MATERIALIZED (
    SELECT * FROM events WHERE stream_id IN (SELECT unnest($streams::INTEGER[])) AND t_ns BETWEEN $start_ns AND $end_ns
), ops AS (
    SELECT stream_id, kind, op, min(seq) AS seq, CASE WHEN kind IN ({_CLOSINGS}) THEN max(t_ns) ELSE min(t_ns) END AS t_ns,
        min(ns) AS ns, min(req) AS req, min(prefetch) AS prefetch, min(src) AS src, min(dst) AS dst, max(queue) AS queue,
        sum("bytes")::BIGINT AS "bytes",
        arg_min(struct_pack({_STRUCT}), seq) FILTER (coalesce({", ".join(_PARTS)}) IS NOT NULL) AS parts
    FROM near WHERE kind IN ({_BEGINNINGS}, {_CLOSINGS}) AND op IS NOT NULL GROUP BY stream_id, kind, op
)
SELECT * EXCLUDE (parts), {", ".join(f"parts.{name} AS {name}" for name in _PARTS)} FROM ops
UNION ALL BY NAME
SELECT stream_id, kind, seq, t_ns, ns, req, op, prefetch, step, reason, tokens, prefill_tokens, wait_ns, duration_ns,
    CASE WHEN kind IN ({_DECLARED}, {Kind.REQUEST_ARRIVED.value}) THEN "text" END AS "text"
FROM events
WHERE stream_id IN (SELECT unnest($streams::INTEGER[]))
    AND (kind IN ({_DECLARED}) OR (kind IN ({_PLAIN}) AND t_ns BETWEEN $start_ns AND $end_ns))
"""  # noqa: S608  # constants of ours


def windows_recording(cursor: duckdb.DuckDBPyConnection, wanted: list[StreamRow], span: Interval) -> Recording:
    """What was recorded in a span of time, as far as ledgers of requests, ops, steps and blame go. Worker thread."""
    ids = [stream.stream_id for stream in wanted]
    asked = {"streams": ids, "start_ns": span[0] - MARGIN_NS, "end_ns": span[1] + MARGIN_NS}
    table: pa.Table = named_rows(cursor.execute(_ROWS, asked).to_arrow_table(), wanted)
    holes: dict[Stream, list[Interval]] = {identity_of(stream): holes_of(cursor, stream.stream_id) for stream in wanted}
    now_ns = max((last_ns(cursor, stream.stream_id) for stream in wanted), default=0)
    return recording_of_table(table, holes, now_ns=now_ns)


def places_in(recording: Recording, stored: StoredPopulation, wanted: list[StreamRow]) -> IntArray:
    """Where each stored request stands among those of a recording; -1 for one that is not in it."""
    known = {stream: index for index, stream in enumerate(recording.rows.streams)}
    index_of = np.full(max((stream.stream_id for stream in wanted), default=0) + 1, -1)
    for stream in wanted:
        index_of[stream.stream_id] = known.get(identity_of(stream), -1)
    return recording.columns.index.find(index_of[stored.stream_id], stored.req)
