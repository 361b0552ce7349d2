"""The events that the ledgers of some requests need, out of all that are stored. SQL in, Arrow out; worker threads only."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template
from typing import Final, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from kvtrail_schema.identity import Epoch, Rank, Stream
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts_rows import IdArray, Interval, merged
from kvtrail_collector.questions.rows import StreamRow, named_rows
from kvtrail_collector.store.reach import LOOK_NS

COLUMNS: Final = (
    *("seq", "t_ns", "kind", "ns", "req", "op", "prefetch", "step", "tier", "src", "dst", "queue", "reason", "bytes"),
    *("tokens", "prefill_tokens", "wait_ns", "duration_ns"),
    *("queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns"),
)
"""The columns that ledgers need."""


def _numbers(*kinds: Kind) -> str:
    """Kinds for SQL."""
    return ", ".join(str(kind.value) for kind in kinds)


_STEPS: Final = _numbers(Kind.STEP_STARTED, Kind.STEP_FINISHED)
_SWAPS: Final = _numbers(
    *(Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_STARTED, Kind.SWAP_IN_LOADED, Kind.SWAP_IN_FAILED),
    *(Kind.SWAP_OUT_QUEUED, Kind.SWAP_OUT_STARTED, Kind.SWAP_OUT_WRITTEN, Kind.SWAP_OUT_FAILED, Kind.SWAP_OUT_SKIPPED),
)
_ENDS: Final = _numbers(Kind.REQUEST_FINISHED, Kind.REQUEST_CANCELLED, Kind.REQUEST_REJECTED)
_OWN: Final = _numbers(
    *(Kind.REQUEST_ARRIVED, Kind.REQUEST_WAITING, Kind.REQUEST_ADMITTED, Kind.REQUEST_PREEMPTED, Kind.REQUEST_RESUMED),
    *(Kind.REQUEST_FIRST_TOKEN, Kind.REQUEST_FINISHED, Kind.REQUEST_CANCELLED, Kind.REQUEST_REJECTED),
    *(Kind.LOOKUP_FINISHED, Kind.PREFILL_CHUNK, Kind.COPY_WAITED, Kind.PREFETCH_USED),
)
_DRILLS: Final = _numbers(Kind.FAULT_INJECTED, Kind.FAULT_CLEARED)

_LIVES: Final = f"""
SELECT req, arrived_ns, coalesce(end_ns, -1) AS end_ns
FROM (SELECT req, min(t_ns) FILTER (kind = {Kind.REQUEST_ARRIVED.value}) AS arrived_ns,
    coalesce(min(t_ns) FILTER (kind = {Kind.REQUEST_FIRST_TOKEN.value}), min(t_ns) FILTER (kind IN ({_ENDS}))) AS end_ns
FROM events WHERE stream_id = $stream AND kind IN ({_ENDS}, {Kind.REQUEST_ARRIVED.value}, {Kind.REQUEST_FIRST_TOKEN.value})
    AND req IN (SELECT unnest($wanted::UBIGINT[])) GROUP BY req
) WHERE arrived_ns IS NOT NULL ORDER BY arrived_ns, req
"""  # noqa: S608  # constants of ours
_ROWS: Final = Template(f"""
WITH wanted AS MATERIALIZED (SELECT unnest($$wanted::UBIGINT[]) AS req),
near AS NOT MATERIALIZED (SELECT * FROM events WHERE stream_id = $$stream AND t_ns BETWEEN $$start_ns AND $$end_ns),
used AS MATERIALIZED (
    SELECT DISTINCT prefetch FROM near SEMI JOIN wanted USING (req) WHERE kind = {Kind.PREFETCH_USED.value}
),
moves AS NOT MATERIALIZED (FROM near WHERE op IS NOT NULL AND kind IN ({_SWAPS}, {Kind.COPY_WAITED.value})),
own AS MATERIALIZED (
    SELECT op FROM moves SEMI JOIN wanted USING (req) UNION SELECT op FROM moves SEMI JOIN used USING (prefetch)
)
SELECT stream_id, $step_columns, NULL AS "text" FROM near WHERE kind IN ({_STEPS})
UNION ALL SELECT stream_id, $columns, CASE WHEN kind = {Kind.REQUEST_ARRIVED.value} THEN "text" END
FROM near SEMI JOIN wanted USING (req) WHERE kind IN ({_OWN})
UNION ALL SELECT stream_id, $columns, NULL FROM near SEMI JOIN own USING (op) WHERE kind IN ({_SWAPS})
""")  # noqa: S608  # constants of ours
"""Three looks, each a join with few ids: groups of rows whose ids all lie outside of theirs are not read."""
_OF_STEPS: Final = frozenset({"seq", "t_ns", "kind", "step", "tokens", "prefill_tokens"})
"""The columns of steps that anything is made from; of the others nothing is read."""

_GAPS: Final = """
SELECT last_seq, lead(first_seq) OVER (ORDER BY first_seq) AS next_seq FROM seq_ranges WHERE stream_id = ? QUALIFY next_seq > 0
"""
_NEAR: Final = 4
"""How far behind what drills said a row is looked for that bounds a hole."""
_BORDERS: Final = f"""
SELECT border, side, CASE side WHEN 0 THEN max_by(t_ns, seq) ELSE min_by(t_ns, seq) END AS t_ns
FROM events, (SELECT unnest($borders::UBIGINT[]) AS border, unnest($sides::INTEGER[]) AS side)
WHERE stream_id = $stream AND kind NOT IN ({_DRILLS})
    AND seq BETWEEN border - CASE side WHEN 0 THEN {_NEAR} ELSE 0 END AND border + CASE side WHEN 0 THEN 0 ELSE {_NEAR} END
GROUP BY border, side
"""  # noqa: S608  # constants of ours


class Lives(NamedTuple):
    """When requests came and ended, by request; those of which no arrival is stored are not there. -1: not ended yet."""

    req: IdArray
    arrived_ns: np.ndarray[tuple[int], np.dtype[np.int64]]
    end_ns: np.ndarray[tuple[int], np.dtype[np.int64]]


def identity_of(stream: StreamRow) -> Stream:
    """The stream that a row of the store names."""
    return Stream(stream.engine, Epoch(stream.epoch), Rank(stream.rank))


def lives(cursor: duckdb.DuckDBPyConnection, stream_id: int, wanted: IdArray) -> Lives:
    """When some requests of a stream came and ended. One look at three columns of its events."""
    asked = {"stream": stream_id, "wanted": wanted.tolist()}
    table = cursor.execute(_LIVES, asked).to_arrow_table()
    return Lives(
        table["req"].to_numpy().astype(np.uint64),
        table["arrived_ns"].to_numpy().astype(np.int64),
        table["end_ns"].to_numpy().astype(np.int64),
    )


def rows_for(
    cursor: duckdb.DuckDBPyConnection, stream: StreamRow, wanted: IdArray, span: Interval, columns: Sequence[str] = COLUMNS
) -> pa.Table:
    """The rows that the ledgers of some requests of a stream need, all of whom lived within a span."""
    of_steps = ", ".join(f'"{name}"' if name in _OF_STEPS else f'NULL AS "{name}"' for name in columns)
    query = _ROWS.substitute(columns=", ".join(f'"{name}"' for name in columns), step_columns=of_steps)
    asked = {
        "stream": stream.stream_id,
        "wanted": wanted.tolist(),
        "start_ns": span[0] - LOOK_NS,
        "end_ns": span[1] + LOOK_NS,
    }
    return named_rows(cursor.execute(query, asked).to_arrow_table(), [stream])


def holes_of(cursor: duckdb.DuckDBPyConnection, stream_id: int) -> list[Interval]:
    """The intervals of time in which rows of a stream are missing, as the books have it."""
    gaps = cursor.execute(_GAPS, [stream_id]).fetchall()
    if not gaps:
        return []
    borders = [border for gap in gaps for border in gap]
    asked = {"stream": stream_id, "borders": borders, "sides": [0, 1] * len(gaps)}
    found = {(border, side): t_ns for border, side, t_ns in cursor.execute(_BORDERS, asked).fetchall()}
    sides = [(found.get((last, 0)), found.get((following, 1))) for last, following in gaps]
    return merged((min(low, high), max(low, high)) for low, high in sides if low is not None and high is not None)


def last_ns(cursor: duckdb.DuckDBPyConnection, stream_id: int) -> int:
    """The time of the latest row of a stream; 0 where it has none."""
    row = cursor.execute("SELECT max(t_ns) FROM events WHERE stream_id = ?", [stream_id]).fetchone()
    return int(row[0]) if row and row[0] is not None else 0
