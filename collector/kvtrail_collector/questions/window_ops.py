"""The transfers of a stretch of time: those that ended well from what is kept of each, and the others from their rows."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import Stream
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts_ops import OpColumns, op_columns
from kvtrail_collector.facts_rows import NO_INT, IntArray, Interval, ids_of, ints_of, rows_of_selection
from kvtrail_collector.ledger_open import seen
from kvtrail_collector.projections.ops import OpOutcome

_PARTS: Final = ("queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns")
_END_DONE: Final = 1
"""The place of `done` among the ends of ops."""


def numbers(*kinds: Kind) -> str:
    """Kinds for SQL."""
    return ", ".join(str(kind.value) for kind in kinds)


_DONE: Final = numbers(Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN)
_CLOSINGS: Final = f"{_DONE}, {numbers(Kind.SWAP_IN_FAILED, Kind.SWAP_OUT_FAILED, Kind.SWAP_OUT_SKIPPED)}"
_BEGINNINGS: Final = numbers(Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_STARTED, Kind.SWAP_OUT_QUEUED, Kind.SWAP_OUT_STARTED)
_HAS_PARTS: Final = f"coalesce({', '.join(_PARTS)}) IS NOT NULL"
_STRUCT: Final = ", ".join(f"{name} := {name}" for name in _PARTS)
_NEAR: Final = """
near AS NOT MATERIALIZED (
    SELECT * FROM events WHERE stream_id IN (SELECT unnest($streams::INTEGER[])) AND t_ns BETWEEN $start_ns AND $end_ns
)
"""

# An op that ended well has one row with its parts: it is kept whole, but for what that row says of itself.
_KEPT: Final = f"""
WITH {_NEAR}, bearing AS (
    SELECT stream_id, op, seq, ns, kind FROM near WHERE kind IN ({_DONE}) AND op IS NOT NULL AND {_HAS_PARTS}
), begun AS (
    SELECT stream_id, op, max(queue) AS queue, min(ns) AS ns FROM near
    WHERE kind IN ({_BEGINNINGS}) AND op IS NOT NULL AND (queue IS NOT NULL OR ns IS NOT NULL) GROUP BY stream_id, op
)
SELECT own.stream_id, own.op, own.req, own.prefetch, own.src, own.dst, own.queued_ns, own.started_ns, own.closed_ns,
    {", ".join(f"own.{name}" for name in _PARTS)}, own."bytes", bearing.seq, bearing.kind,
    begun.queue, coalesce(bearing.ns, begun.ns) AS ns
FROM ops AS own JOIN bearing USING (stream_id, op) LEFT JOIN begun USING (stream_id, op)
WHERE own.outcome = {OpOutcome.DONE.value} AND own.queued_ns IS NOT NULL
    AND greatest(own.src, own.dst) < {len(Tier)} AND own.src IS NOT NULL AND own.dst IS NOT NULL
"""  # noqa: S608  # constants of ours
_OTHERS_THERE: Final = """
SELECT stream_id, op FROM ops ANTI JOIN kept_in USING (stream_id, op) WHERE stream_id IN (SELECT unnest($streams::INTEGER[]))
    AND least(queued_ns, started_ns, closed_ns) <= $end_ns AND greatest(queued_ns, started_ns, closed_ns) >= $start_ns
"""
_OTHERS: Final = f"""
WITH {_NEAR}, grouped AS (
    SELECT stream_id, kind, op, min(seq) AS seq, CASE WHEN kind IN ({_CLOSINGS}) THEN max(t_ns) ELSE min(t_ns) END AS t_ns,
        min(ns) AS ns, min(req) AS req, min(prefetch) AS prefetch, min(src) AS src, min(dst) AS dst, max(queue) AS queue,
        sum("bytes")::BIGINT AS "bytes", arg_min(struct_pack({_STRUCT}), seq) FILTER ({_HAS_PARTS}) AS parts
    FROM near SEMI JOIN others_in USING (stream_id, op)
    WHERE kind IN ({_BEGINNINGS}, {_CLOSINGS}) AND op IS NOT NULL GROUP BY stream_id, kind, op
)
SELECT * EXCLUDE (parts), {", ".join(f"parts.{name} AS {name}" for name in _PARTS)} FROM grouped
"""  # noqa: S608  # constants of ours


def window_ops(cursor: duckdb.DuckDBPyConnection, stream_ids: list[int], names: list[Stream], span: Interval) -> OpColumns:
    """All transfers of which anything was told in a span of time. Worker thread; about 3 µs each.

    `stream_ids` and `names` are those of the same streams, in the order in which their places are counted.
    """
    asked = {"streams": stream_ids, "start_ns": span[0], "end_ns": span[1]}
    kept = _each_once(cursor.execute(_KEPT, asked).to_arrow_table())
    with seen(cursor, "kept_in", kept.select(["stream_id", "op"])):
        others = cursor.execute(_OTHERS_THERE, asked).to_arrow_table()
    parts = [_of_kept(kept, places_of(kept, stream_ids))]
    if others.num_rows:
        with seen(cursor, "others_in", others):
            table = cursor.execute(_OTHERS, asked).to_arrow_table()
        parts.append(op_columns(rows_of_selection(table, places_of(table, stream_ids), dict.fromkeys(names, ()))))
    return _together(parts)


def places_of(table: pa.Table, stream_ids: list[int]) -> IntArray:
    """The place of each row's stream among some."""
    place = np.zeros(max(stream_ids, default=0) + 1, dtype=np.int64)
    place[stream_ids] = np.arange(len(stream_ids))
    return np.asarray(place[table["stream_id"].to_numpy()], dtype=np.int64)


def _each_once(kept: pa.Table) -> pa.Table:
    """Those that stand there once, sorted: of one with several rows that have parts, its rows tell more."""
    stream, op = kept["stream_id"].to_numpy(), ids_of(kept, "op")
    order = np.lexsort((op, stream))
    again = (op[order][1:] == op[order][:-1]) & (stream[order][1:] == stream[order][:-1])
    single = ~(np.append(again, False) | np.append(False, again))[: len(order)]
    return kept.take(pa.array(order[single]))


def _of_kept(kept: pa.Table, stream: IntArray) -> OpColumns:
    """Ops that ended well, as columns."""
    parts = np.stack([ints_of(kept, name) for name in _PARTS], axis=1)
    queued, started = ints_of(kept, "queued_ns"), ints_of(kept, "started_ns")
    unsaid = (parts[:, 0] == NO_INT) & (started != NO_INT)
    parts[:, 0] = np.where(unsaid, started - queued, parts[:, 0])
    return OpColumns(
        stream=stream,
        op=ids_of(kept, "op"),
        load=(ints_of(kept, "kind") == Kind.SWAP_IN_LOADED.value).astype(np.int64),
        src=ints_of(kept, "src"),
        dst=ints_of(kept, "dst"),
        queued_ns=queued,
        started_ns=started,
        closing_ns=ints_of(kept, "closed_ns"),
        parts_ns=np.maximum(parts, 0),
        bytes=ints_of(kept, "bytes"),
        req=ids_of(kept, "req"),
        prefetch=ids_of(kept, "prefetch"),
        ns=ids_of(kept, "ns"),
        queue=ints_of(kept, "queue"),
        end=np.full(kept.num_rows, _END_DONE),
        seq=ids_of(kept, "seq"),
    )


def _together(parts: list[OpColumns]) -> OpColumns:
    """Several columns of ops as one, sorted by (stream, op)."""
    columns = {field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(OpColumns)}
    order = np.lexsort((columns["op"], columns["stream"]))
    return OpColumns(**{name: values[order] for name, values in columns.items()})
