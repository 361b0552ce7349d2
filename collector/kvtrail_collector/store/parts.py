"""Sealed parts: events that left the hot file, each part one Parquet file, and the books of which seqs are in which part.

The books are written in the transaction that takes the rows out of the hot file, so that each event is in exactly one of
the two places at any moment, whatever dies when.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

from kvtrail_collector.store.hot import HOT_SQL
from kvtrail_collector.store.ranges import RangeSet, SeqRange, merged

ALL: Final = "events"
"""The view of all events, hot and sealed: what questions ask."""

_LOAD: Final = "SELECT part_id, file, rows, size_bytes, last_wall_ns FROM sealed_parts ORDER BY part_id"
_LOAD_RANGES: Final = "SELECT part_id, stream_id, first_seq, last_seq FROM sealed_ranges"
_ADD: Final = "INSERT INTO sealed_parts (part_id, file, rows, size_bytes, last_wall_ns) VALUES (?, ?, ?, ?, ?)"
_ADD_RANGE: Final = "INSERT INTO sealed_ranges (part_id, stream_id, first_seq, last_seq) VALUES (?, ?, ?, ?)"
_FORGET: Final = ("DELETE FROM sealed_parts WHERE part_id = ?", "DELETE FROM sealed_ranges WHERE part_id = ?")


@dataclass(frozen=True, slots=True)
class Part:
    """One sealed file: its name in the folder, what it holds, and the wall time of its newest event."""

    part_id: int
    file: str
    rows: int
    size_bytes: int
    last_wall_ns: int
    ranges: Mapping[int, RangeSet]
    """The seqs in it, by stream id."""


def load_parts(connection: duckdb.DuckDBPyConnection) -> tuple[Part, ...]:
    """All parts, oldest first, as the last commit left them."""
    ranges: dict[int, dict[int, list[SeqRange]]] = {}
    for part_id, stream_id, first, last in connection.execute(_LOAD_RANGES).fetchall():
        ranges.setdefault(part_id, {}).setdefault(stream_id, []).append(SeqRange(first, last))
    return tuple(
        Part(part_id, file, rows, size_bytes, last_wall_ns, _merged(ranges.get(part_id, {})))
        for part_id, file, rows, size_bytes, last_wall_ns in connection.execute(_LOAD).fetchall()
    )


def _merged(ranges: Mapping[int, list[SeqRange]]) -> dict[int, RangeSet]:
    """Ranges of each stream as a set."""
    return {stream_id: merged(own) for stream_id, own in ranges.items()}


def add_part(connection: duckdb.DuckDBPyConnection, part: Part) -> None:
    """Write a part into the books. Runs on the writer's thread, in a transaction."""
    connection.execute(_ADD, [part.part_id, part.file, part.rows, part.size_bytes, part.last_wall_ns])
    rows = [[part.part_id, stream_id, *one] for stream_id, own in part.ranges.items() for one in own]
    connection.executemany(_ADD_RANGE, rows)


def forget_parts(connection: duckdb.DuckDBPyConnection, parts: Sequence[Part]) -> None:
    """Take parts out of the books. Runs on the writer's thread, in a transaction."""
    for part in parts:
        for statement in _FORGET:
            connection.execute(statement, [part.part_id])


def show_all(connection: duckdb.DuckDBPyConnection, parts: Sequence[Part], folder: Path | None) -> None:
    """Make the view of all events cover these parts. Part of the transaction that changes them; milliseconds."""
    statement = f"CREATE OR REPLACE VIEW {ALL} AS {HOT_SQL}"
    if parts and folder is not None:
        files = files_sql(parts, folder)
        statement += f" UNION ALL BY NAME SELECT * EXCLUDE (engine, epoch, rank) FROM {files}"  # noqa: S608  # as above
    connection.execute(statement)


def files_sql(parts: Sequence[Part], folder: Path) -> str:
    """The files of parts as something to select from. They are named by us; only the folder may hold a quotation mark."""
    names = ", ".join("'" + str(folder / part.file).replace("'", "''") + "'" for part in parts)
    return f"read_parquet([{names}], union_by_name = true)"
