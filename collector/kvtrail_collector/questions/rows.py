"""Events as an Arrow table for the computing parts: the columns that they read, with engine, epoch and rank."""

from __future__ import annotations

from typing import Final, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from kvtrail_schema.kinds import Kind

COLUMNS: Final = (
    *("seq", "t_ns", "ns", "req", "op", "prefetch", "step", "id", "cause", "block"),
    *("src", "dst", "slot", "queue", "reason", "bytes", "tokens", "prefill_tokens", "decode_tokens", "token_start"),
    *("queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns", "wait_ns", "duration_ns"),
    *("restore_estimate_ns", "recompute_estimate_ns", "keep_estimate_ns", "device_ns", "depth", "path", "pinned"),
)
"""Columns that explaining needs, beside `kind`, `tier` and `text`; the others stay where they are."""

_DRILLS: Final = f"{Kind.FAULT_INJECTED.value}, {Kind.FAULT_CLEARED.value}"
_DECLARED: Final = ", ".join(str(kind.value) for kind in (Kind.TIER_DECLARED, Kind.NAMESPACE_DECLARED, Kind.MANIFEST_DECLARED))
_COLUMN_LIST: Final = ", ".join(f'"{name}"' for name in COLUMNS)

# What a drill says is blanked, its seq stays: explaining must not read it, and must not take it for a hole either.
_ROWS: Final = f"""
SELECT stream_id, CASE WHEN kind IN ({_DRILLS}) THEN 0 ELSE kind END::USMALLINT AS kind,
    CASE WHEN kind NOT IN ({_DRILLS}) THEN "text" END AS "text", CASE WHEN kind NOT IN ({_DRILLS}) THEN tier END AS tier,
    {_COLUMN_LIST}
FROM events WHERE stream_id IN (SELECT unnest(?::INTEGER[]))
"""  # noqa: S608  # constants of ours
_WITHIN: Final = f"AND (t_ns BETWEEN ? AND ? OR kind IN ({_DECLARED}))"
_HOLDING: Final = ", ".join(
    str(kind.value)
    for kind in (
        *(Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_STARTED, Kind.SWAP_IN_LOADED, Kind.SWAP_IN_FAILED),
        *(Kind.SWAP_OUT_QUEUED, Kind.SWAP_OUT_STARTED, Kind.SWAP_OUT_WRITTEN, Kind.SWAP_OUT_FAILED, Kind.SWAP_OUT_SKIPPED),
        *(Kind.STEP_STARTED, Kind.STEP_FINISHED, Kind.REQUEST_ARRIVED),
        *(Kind.PREFETCH_USED, Kind.PREFETCH_WASTED, Kind.PREFETCH_CANCELLED),
    )
)
_OTHERS: Final = f"""
SELECT stream_id, kind, seq, t_ns, ns, req, op, prefetch, step, src, dst, queue, "bytes", tokens, prefill_tokens,
    queue_ns, alloc_ns, submit_ns, io_ns, copy_ns, sync_ns
FROM events WHERE stream_id = ? AND t_ns BETWEEN ? AND ? AND kind IN ({_HOLDING})
"""  # noqa: S608  # constants of ours
"""Of what others did: what transfers, steps and prefetches are made from, and whose they are."""
_STREAMS: Final = "SELECT stream_id, engine, epoch, rank FROM streams ORDER BY stream_id"


class StreamRow(NamedTuple):
    """One stream, with the id that stands on its rows."""

    stream_id: int
    engine: str
    epoch: int
    rank: int


def streams(cursor: duckdb.DuckDBPyConnection) -> list[StreamRow]:
    """All streams ever heard of, oldest first."""
    return [StreamRow(*row) for row in cursor.execute(_STREAMS).fetchall()]


def event_rows(cursor: duckdb.DuckDBPyConnection, wanted: list[StreamRow], span: tuple[int, int] | None = None) -> pa.Table:
    """All rows of some streams, or those of a span of time and what was declared before; about a second for ten million."""
    ids = [stream.stream_id for stream in wanted]
    found = cursor.execute(_ROWS, [ids]) if span is None else cursor.execute(f"{_ROWS} {_WITHIN}", [ids, *span])
    return named_rows(found.to_arrow_table(), wanted)


def event_rows_of_request(cursor: duckdb.DuckDBPyConnection, stream: StreamRow, request: int) -> pa.Table:
    """All rows of a request, and what was declared. In two looks: of one for both, neither condition leaves anything out."""
    own = cursor.execute(f"{_ROWS} AND req = ?", [[stream.stream_id], request]).to_arrow_table()
    told = cursor.execute(f"{_ROWS} AND kind IN ({_DECLARED})", [[stream.stream_id]]).to_arrow_table()
    return named_rows(pa.concat_tables([own, told]), [stream])


def event_rows_of_others(cursor: duckdb.DuckDBPyConnection, stream: StreamRow, span: tuple[int, int]) -> pa.Table:
    """Rows in a span of time of what can have kept a request waiting, by few of their columns: there may be very many."""
    return named_rows(cursor.execute(_OTHERS, [stream.stream_id, *span]).to_arrow_table(), [stream])


def event_rows_named(cursor: duckdb.DuckDBPyConnection, wanted: list[StreamRow], ids: list[int]) -> pa.Table:
    """The rows of some streams that bear these ids, which is how causes name them."""
    asked = [[stream.stream_id for stream in wanted], ids]
    return named_rows(cursor.execute(f'{_ROWS} AND "id" IN (SELECT unnest(?::UBIGINT[]))', asked).to_arrow_table(), wanted)


def event_rows_of_block(cursor: duckdb.DuckDBPyConnection, wanted: list[StreamRow], block: int) -> pa.Table:
    """The rows of some streams that name a block."""
    asked = [[stream.stream_id for stream in wanted], block]
    return named_rows(cursor.execute(f'{_ROWS} AND "block" = ?', asked).to_arrow_table(), wanted)


def named_rows(table: pa.Table, wanted: list[StreamRow]) -> pa.Table:
    """The table with engine, epoch and rank in place of the stream's id, each name held once."""
    ids = pa.array([stream.stream_id for stream in wanted], pa.int32())
    index = pc.index_in(table["stream_id"].combine_chunks(), value_set=ids)
    engines = pa.DictionaryArray.from_arrays(index, pa.array([stream.engine for stream in wanted], pa.utf8()))
    epochs = pa.array([stream.epoch for stream in wanted], pa.uint64()).take(index)
    ranks = pa.array([stream.rank for stream in wanted], pa.uint16()).take(index)
    plain = table.drop_columns(["stream_id"])
    return plain.append_column("engine", engines).append_column("epoch", epochs).append_column("rank", ranks)
