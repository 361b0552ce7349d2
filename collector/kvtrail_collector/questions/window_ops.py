"""The transfers of a stretch of time: those that ended well from what is kept of each, and the others from their rows."""

from __future__ import annotations

from dataclasses import fields
from string import Template
from typing import Final

import numpy as np
import pyarrow as pa
from kvtrail_schema.enums import Tier
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts_ops import OpColumns, op_columns
from kvtrail_collector.facts_rows import NO_INT, BoolArray, IntArray, Interval, ids_of, ints_of
from kvtrail_collector.projections.ops import OpOutcome
from kvtrail_collector.questions.window_look import Look, numbers
from kvtrail_collector.store.reach import LOOK_NS

_PARTS: Final = ("queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns")
_INTS: Final = ("kind", "src", "dst", "queued_ns", "started_ns", "closed_ns", *_PARTS, "bytes", "queue")
_END_DONE: Final = 1
"""The place of `done` among the ends of ops."""

_NEVER: Final = np.int64(2**63 - 1)
_LOADS: Final = np.array([Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_STARTED, Kind.SWAP_IN_LOADED, Kind.SWAP_IN_FAILED], dtype=np.int64)
_CLOSINGS: Final = numbers(
    *(Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN, Kind.SWAP_IN_FAILED, Kind.SWAP_OUT_FAILED, Kind.SWAP_OUT_SKIPPED)
)
_BEGINNINGS: Final = numbers(Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_STARTED, Kind.SWAP_OUT_QUEUED, Kind.SWAP_OUT_STARTED)
_HAS_PARTS: Final = f"coalesce({', '.join(_PARTS)}) IS NOT NULL"
_STRUCT: Final = ", ".join(f"{name} := {name}" for name in _PARTS)

# What an op that ended well says stands in its row of `ops`, but for what its events say of themselves.
_TOLD: Final = f"""
WITH told AS (
    SELECT stream_id, op, min(seq) FILTER (kind IN ({_CLOSINGS})) AS seq, max(kind) AS kind, min(ns) AS ns, max(queue) AS queue,
        count(*) FILTER (kind IN ({_CLOSINGS}) AND {_HAS_PARTS}) AS bearing
    FROM events WHERE $near AND kind IN ({_BEGINNINGS}, {_CLOSINGS}) AND op IS NOT NULL GROUP BY stream_id, op
)
SELECT stream_id, op, own.req, own.prefetch, own.src, own.dst, own.queued_ns, own.started_ns, own.closed_ns,
    {", ".join(f"own.{name}" for name in _PARTS)}, own."bytes", told.seq, told.kind, told.queue, told.ns,
    coalesce(bearing = 1 AND own.outcome = {OpOutcome.DONE.value} AND own.queued_ns IS NOT NULL
        AND greatest(own.src, own.dst) < {len(Tier)} AND own.src IS NOT NULL AND own.dst IS NOT NULL, false) AS is_kept
FROM (FROM ops WHERE $streams AND least(queued_ns, started_ns, closed_ns) <= $end_ns
    AND greatest(queued_ns, started_ns, closed_ns) >= $start_ns) AS own
LEFT JOIN told USING (stream_id, op)
"""  # noqa: S608  # constants of ours
_ROWS: Final = f"""
WITH grouped AS (
    SELECT stream_id, kind, op, min(seq) AS seq, CASE WHEN kind IN ({_CLOSINGS}) THEN max(t_ns) ELSE min(t_ns) END AS t_ns,
        min(ns) AS ns, min(req) AS req, min(prefetch) AS prefetch, min(src) AS src, min(dst) AS dst, max(queue) AS queue,
        sum("bytes")::BIGINT AS "bytes", arg_min(struct_pack({_STRUCT}), seq) FILTER ({_HAS_PARTS}) AS parts
    FROM events SEMI JOIN wanted_in USING (stream_id, op)
    WHERE $near AND kind IN ({_BEGINNINGS}, {_CLOSINGS}) AND op IS NOT NULL GROUP BY stream_id, kind, op
)
SELECT * EXCLUDE (parts), {", ".join(f"parts.{name} AS {name}" for name in _PARTS)} FROM grouped
"""  # noqa: S608  # constants of ours


def window_ops(look: Look) -> OpColumns:
    """All transfers around a span of time: those that reach into it, and those that began and ended near it.

    Worker thread; about a microsecond each, and a look at all events near the span. Of one that is not kept whole its rows
    are read, a minute back and forth at most.
    """
    asked = {"near": look.of_time(), "streams": look.of_streams, "start_ns": look.near[0], "end_ns": look.near[1]}
    table = look.table(Template(_TOLD).substitute(asked))
    is_kept = table["is_kept"].to_numpy()
    others = np.flatnonzero(~is_kept & _matters(look, table))
    kept = _of_kept(look, table, np.flatnonzero(is_kept))
    return _together([kept, _of_rows(look, table.take(others))]) if len(others) else kept


def _of_rows(look: Look, others: pa.Table) -> OpColumns:
    """Ops that are not kept whole, from all that was told of them."""
    sql = Template(_ROWS).substitute(near=look.of_time(_span_of(look, others)))
    return op_columns(look.rows(look.table_about(sql, others.select(["stream_id", "op"]))))


def _matters(look: Look, table: pa.Table) -> BoolArray:
    """Which ops reach into the span, or lie near it: one that is cut off far from it kept nobody waiting there."""
    (first, last), (low, high) = _lives(table), look.near
    return np.asarray(((first <= look.span[1]) & (last >= look.span[0])) | ((first >= low) & (last <= high)))


def _lives(table: pa.Table) -> tuple[IntArray, IntArray]:
    """The first and the last time that is known of each op."""
    times = np.stack([ints_of(table, name) for name in ("queued_ns", "started_ns", "closed_ns")])
    known = times != NO_INT
    return np.where(known, times, _NEVER).min(axis=0), np.where(known, times, -_NEVER).max(axis=0)


def _span_of(look: Look, table: pa.Table) -> Interval:
    """The time in which some ops lived, near the span or not too far from it."""
    (first, last), (low, high) = _lives(table), look.near
    return max(min(low, int(first.min())), low - LOOK_NS), min(max(high, int(last.max())), high + LOOK_NS)


def _of_kept(look: Look, table: pa.Table, chosen: IntArray) -> OpColumns:
    """Ops that ended well, as columns, by the place of their stream, and op. `chosen` are the rows that are such."""
    own = look.places(table["stream_id"].to_numpy())
    order = chosen[np.lexsort((ids_of(table, "op")[chosen], own[chosen]))]
    ids = {name: ids_of(table, name)[order] for name in ("op", "req", "prefetch", "ns", "seq")}
    ints = {name: ints_of(table, name)[order] for name in _INTS}
    parts = np.stack([ints[name] for name in _PARTS], axis=1)
    unsaid = (parts[:, 0] == NO_INT) & (ints["started_ns"] != NO_INT)
    parts[:, 0] = np.where(unsaid, ints["started_ns"] - ints["queued_ns"], parts[:, 0])
    return OpColumns(
        stream=own[order],
        load=np.isin(ints["kind"], _LOADS).astype(np.int64),
        src=ints["src"],
        dst=ints["dst"],
        queued_ns=ints["queued_ns"],
        started_ns=ints["started_ns"],
        closing_ns=ints["closed_ns"],
        parts_ns=np.maximum(parts, 0),
        bytes=ints["bytes"],
        queue=ints["queue"],
        end=np.full(len(order), _END_DONE),
        **ids,
    )


def _together(parts: list[OpColumns]) -> OpColumns:
    """Several columns of ops as one, sorted by (stream, op)."""
    columns = {field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(OpColumns)}
    order = np.lexsort((columns["op"], columns["stream"]))
    return OpColumns(**{name: values[order] for name, values in columns.items()})
