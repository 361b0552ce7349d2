"""Finds the oldest events of the hot file that are due, and reads them sorted; beside the writer, on a cursor of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from kvtrail_collector.store.backlog import ROW_GROUP
from kvtrail_collector.store.part_file import SEALED_SCHEMA
from kvtrail_collector.store.parts import HOT
from kvtrail_collector.store.ranges import RangeSet, runs
from kvtrail_collector.store.seal_policy import SealPolicy

# A time that cannot be, in the future or past all numbers, must not keep everything behind it in the file for ever.
_AGES: Final = f"""
WITH own AS (
    SELECT hot.rowid AS place, hot.t_ns::HUGEINT + marks.wall_ns - marks.monotonic_ns AS wall_ns
    FROM {HOT} AS hot JOIN stream_marks AS marks USING (stream_id)
    WHERE hot.rowid >= $first AND hot.rowid < $first + $rows
)
SELECT count(*), min(place) FILTER (wall_ns > $young_ns AND wall_ns <= $now_ns), min(wall_ns),
    max(wall_ns) FILTER (wall_ns <= $young_ns) FROM own
"""  # noqa: S608  # a constant of ours
_FIRST: Final = f"SELECT min(rowid) FROM {HOT}"  # noqa: S608  # a constant of ours
_SEQS: Final = f"SELECT stream_id, seq FROM {HOT} WHERE rowid >= ? AND rowid < ? ORDER BY ALL"  # noqa: S608  # as above
_ROWS: Final = f"""
SELECT $columns FROM {HOT} JOIN streams USING (stream_id) WHERE {HOT}.rowid >= ? AND {HOT}.rowid < ?
ORDER BY stream_id, req, seq
"""  # noqa: S608  # as above
_ALWAYS: Final = ("engine", "epoch", "rank")
_FILE_ROWS: Final = 4 * ROW_GROUP
"""Rows of one row group of a sealed file: large ones pack better, and all of one is in memory while it is written."""
_OLDEST_NS: Final = -(2**63)


class Due(NamedTuple):
    """The first `rows` rows of the hot file, from rowid `first` on, and the wall time of the newest of them."""

    first: int
    rows: int
    last_wall_ns: int


def find_due(cursor: duckdb.DuckDBPyConnection, policy: SealPolicy, now_wall_ns: int) -> Due | None:
    """The rows that the next part should hold; None while too few are old enough."""
    first = cursor.execute(_FIRST).fetchall()[0][0]
    if first is None:
        return None
    young_ns = now_wall_ns - policy.seal_after_ns
    values = {"first": first, "rows": policy.part_rows, "young_ns": young_ns, "now_ns": now_wall_ns}
    count, young_at, oldest_ns, newest_ns = cursor.execute(_AGES, values).fetchall()[0]
    rows = count if young_at is None else young_at - first
    overdue = oldest_ns is not None and oldest_ns <= now_wall_ns - 2 * policy.seal_after_ns
    if rows > ROW_GROUP:
        rows -= rows % ROW_GROUP
    if rows == 0 or (rows < policy.part_rows and not overdue):
        return None
    return Due(first, rows, max(int(newest_ns), _OLDEST_NS) if newest_ns is not None else now_wall_ns)


def ranges_of(cursor: duckdb.DuckDBPyConnection, due: Due) -> dict[int, RangeSet]:
    """Which seqs of which streams are due."""
    table = cursor.execute(_SEQS, [due.first, due.first + due.rows]).to_arrow_table()
    streams, seqs = table["stream_id"].to_numpy(), table["seq"].to_numpy()
    bounds = np.flatnonzero(np.diff(streams)) + 1
    parts = zip(np.split(streams, bounds), np.split(seqs, bounds), strict=True)
    return {int(own[0]): RangeSet(tuple(runs(numbers))) for own, numbers in parts if len(own)}


def rows_of(cursor: duckdb.DuckDBPyConnection, due: Due) -> Iterable[pa.RecordBatch]:
    """The rows that are due, in the order of a sealed file; the columns that hold anything."""
    statement = _ROWS.replace("$columns", ", ".join(f'"{name}"' for name in _used(cursor, due)))
    return cursor.execute(statement, [due.first, due.first + due.rows]).to_arrow_reader(_FILE_ROWS)


def _used(cursor: duckdb.DuckDBPyConnection, due: Due) -> list[str]:
    """The columns that hold anything: reading seventy empty ones would take most of the memory."""
    own = [name for name in SEALED_SCHEMA.names if name not in _ALWAYS]
    counts = ", ".join(f'count("{name}")' for name in own)
    found = cursor.execute(
        f"SELECT {counts} FROM {HOT} WHERE rowid >= ? AND rowid < ?",  # noqa: S608  # names of ours
        [due.first, due.first + due.rows],
    ).fetchall()[0]
    return [*_ALWAYS, *(name for name, count in zip(own, found, strict=True) if count)]
