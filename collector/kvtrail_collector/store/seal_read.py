"""Finds the oldest events of the hot file that are due, and reads them sorted; beside the writer, on a cursor of its own."""

from __future__ import annotations

from collections.abc import Iterable
from string import Template
from typing import Final, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from kvtrail_collector.store.backlog import ROW_GROUP
from kvtrail_collector.store.hot import ALL_COLUMNS, COMMON, COMMON_COLUMNS, WIDE
from kvtrail_collector.store.ranges import RangeSet, runs
from kvtrail_collector.store.seal_policy import SealPolicy

# A time that cannot be, in the future or past all numbers, must not keep everything behind it in the file for ever.
_AGES: Final = Template("""
WITH own AS (
    SELECT hot.rowid AS place, hot.t_ns::HUGEINT + marks.wall_ns - marks.monotonic_ns AS wall_ns
    FROM $table AS hot JOIN stream_marks AS marks USING (stream_id)
    WHERE hot.rowid >= $first AND hot.rowid < $first + $rows
)
SELECT count(*), min(place) FILTER (wall_ns > $young_ns AND wall_ns <= $now_ns), min(wall_ns),
    max(wall_ns) FILTER (wall_ns <= $young_ns) FROM own
""")
_FIRST: Final = "SELECT min(rowid) FROM "
_WITHIN: Final = "rowid >= {} AND rowid < {}"
_ALWAYS: Final = ("engine", "epoch", "rank")
_FILE_ROWS: Final = 4 * ROW_GROUP
"""Rows of one row group of a sealed file: large ones pack better, and all of one is in memory while it is written."""
_OLDEST_NS: Final = -(2**63)

SEALED_ORDER: Final = "stream_id, req, seq"
"""The order of rows in a sealed file."""
_ORDERED_BY: Final = frozenset(SEALED_ORDER.split(", "))


class Prefix(NamedTuple):
    """The first `rows` rows of one hot table, from rowid `first` on."""

    table: str
    first: int
    rows: int

    def sql(self, columns: str) -> str:
        """Some columns of these rows."""
        where = _WITHIN.format(self.first, self.first + self.rows)
        return f"SELECT {columns} FROM {self.table} WHERE {where}"  # noqa: S608  # names and numbers of ours


class Due(NamedTuple):
    """The oldest rows of the hot file, and the wall time of the newest of them."""

    prefixes: tuple[Prefix, ...]
    last_wall_ns: int

    @property
    def rows(self) -> int:
        """How many rows are due."""
        return sum(prefix.rows for prefix in self.prefixes)


class _Aged(NamedTuple):
    """The old rows at the beginning of one table, and the wall times of its oldest row and of the newest old one."""

    prefix: Prefix
    oldest_ns: int | None
    newest_ns: int | None


def find_due(cursor: duckdb.DuckDBPyConnection, policy: SealPolicy, now_wall_ns: int) -> Due | None:
    """The rows that the next part should hold; None while too few are old enough.

    A part holds the oldest common rows, and the wide rows that are no younger than those.
    """
    young_ns = now_wall_ns - policy.seal_after_ns
    common = _aged(cursor, COMMON, policy.part_rows, young_ns, now_wall_ns)
    if common.prefix.rows > ROW_GROUP:
        common = _aged(cursor, COMMON, common.prefix.rows - common.prefix.rows % ROW_GROUP, young_ns, now_wall_ns)
    is_full = common.prefix.rows == policy.part_rows and common.newest_ns is not None
    wide = _aged(cursor, WIDE, policy.part_rows, int(common.newest_ns or 0) if is_full else young_ns, now_wall_ns)
    oldest_ns = min((one.oldest_ns for one in (common, wide) if one.oldest_ns is not None), default=now_wall_ns)
    due = Due(
        tuple(one.prefix for one in (common, wide) if one.prefix.rows),
        max((int(one.newest_ns) for one in (common, wide) if one.newest_ns is not None), default=now_wall_ns),
    )
    is_overdue = oldest_ns <= now_wall_ns - 2 * policy.seal_after_ns
    if due.rows == 0 or (due.rows < policy.part_rows and not is_overdue):
        return None
    return due._replace(last_wall_ns=max(due.last_wall_ns, _OLDEST_NS))


def _aged(cursor: duckdb.DuckDBPyConnection, table: str, rows: int, young_ns: int, now_wall_ns: int) -> _Aged:
    """The rows at the beginning of a table, at most so many, before the first one that is younger than a time."""
    first = cursor.execute(_FIRST + table).fetchall()[0][0]
    if first is None:
        return _Aged(Prefix(table, 0, 0), None, None)
    values = {"first": first, "rows": rows, "young_ns": young_ns, "now_ns": now_wall_ns}
    statement = _AGES.safe_substitute(table=table)
    count, young_at, oldest_ns, newest_ns = cursor.execute(statement, values).fetchall()[0]
    return _Aged(Prefix(table, first, count if young_at is None else young_at - first), oldest_ns, newest_ns)


def ranges_of(cursor: duckdb.DuckDBPyConnection, due: Due) -> dict[int, RangeSet]:
    """Which seqs of which streams are due."""
    statement = " UNION ALL ".join(prefix.sql("stream_id, seq") for prefix in due.prefixes)
    table = cursor.execute(f"{statement} ORDER BY ALL").to_arrow_table()
    streams, seqs = table["stream_id"].to_numpy(), table["seq"].to_numpy()
    bounds = np.flatnonzero(np.diff(streams)) + 1
    parts = zip(np.split(streams, bounds), np.split(seqs, bounds), strict=True)
    return {int(own[0]): RangeSet(tuple(runs(numbers))) for own, numbers in parts if len(own)}


def rows_of(cursor: duckdb.DuckDBPyConnection, due: Due) -> Iterable[pa.RecordBatch]:
    """The rows that are due, in the order of a sealed file; the columns that hold anything."""
    rows = " UNION ALL BY NAME ".join(prefix.sql(_list(_used(cursor, prefix))) for prefix in due.prefixes)
    statement = f"SELECT {_list(_ALWAYS)}, own.* FROM ({rows}) AS own JOIN streams USING (stream_id) ORDER BY {SEALED_ORDER}"  # noqa: S608  # names and numbers of ours
    return cursor.execute(statement).to_arrow_reader(_FILE_ROWS)


def _used(cursor: duckdb.DuckDBPyConnection, prefix: Prefix) -> list[str]:
    """The columns that hold anything, and those that rows are sorted by: reading seventy empty ones would take most of the
    memory.
    """
    own = ["stream_id", *(COMMON_COLUMNS if prefix.table == COMMON else ALL_COLUMNS)]
    counts = ", ".join(f'count("{name}")' for name in own)
    found = cursor.execute(prefix.sql(counts)).fetchall()[0]
    return [name for name, count in zip(own, found, strict=True) if count or name in _ORDERED_BY]


def _list(columns: Iterable[str]) -> str:
    """Columns as SQL."""
    return ", ".join(f'"{name}"' for name in columns)
