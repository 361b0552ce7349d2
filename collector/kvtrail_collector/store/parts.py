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
import pyarrow as pa

from kvtrail_collector.store.commit import registered
from kvtrail_collector.store.hot import HOT_SQL
from kvtrail_collector.store.ranges import RangeSet, SeqRange, merged

ALL: Final = "events"
"""The view of all events, hot and sealed: what questions ask."""

_LOAD: Final = "SELECT part_id, file, rows, size_bytes, last_wall_ns FROM sealed_parts ORDER BY part_id"
_LOAD_SEQS: Final = """
SELECT stream_id, first_seq, last_seq FROM sealed_ranges WHERE part_id IN (SELECT unnest(?::BIGINT[]))
"""
_ADD: Final = "INSERT INTO sealed_parts (part_id, file, rows, size_bytes, last_wall_ns) VALUES (?, ?, ?, ?, ?)"
_ADD_RANGES: Final = "INSERT INTO sealed_ranges (part_id, stream_id, first_seq, last_seq) SELECT * FROM sealed_in"
_RANGES: Final = pa.schema(
    [("part_id", pa.int64()), ("stream_id", pa.int32()), ("first_seq", pa.uint64()), ("last_seq", pa.uint64())]
)
_FORGET: Final = ("DELETE FROM sealed_parts WHERE part_id = ?", "DELETE FROM sealed_ranges WHERE part_id = ?")


Seqs = Mapping[int, RangeSet]
"""Seqs by stream id."""


@dataclass(frozen=True, slots=True)
class Part:
    """One sealed file: its name in the folder, how much it holds, and the wall time of its newest event.

    Which seqs are in it stands in the books alone: there may be many ranges, and there are many parts.
    """

    part_id: int
    file: str
    rows: int
    size_bytes: int
    last_wall_ns: int


def load_parts(connection: duckdb.DuckDBPyConnection) -> tuple[Part, ...]:
    """All parts, oldest first, as the last commit left them."""
    return tuple(Part(*row) for row in connection.execute(_LOAD).fetchall())


def seqs_of(connection: duckdb.DuckDBPyConnection, parts: Sequence[Part]) -> Seqs:
    """The seqs that some parts hold, as the books have it."""
    ranges: dict[int, list[SeqRange]] = {}
    for stream_id, first, last in connection.execute(_LOAD_SEQS, [[part.part_id for part in parts]]).fetchall():
        ranges.setdefault(stream_id, []).append(SeqRange(first, last))
    return {stream_id: merged(own) for stream_id, own in ranges.items()}


def add_part(connection: duckdb.DuckDBPyConnection, part: Part, seqs: Seqs) -> None:
    """Write a part and its seqs into the books. Runs on the writer's thread, in a transaction; about a microsecond a range."""
    connection.execute(_ADD, [part.part_id, part.file, part.rows, part.size_bytes, part.last_wall_ns])
    rows = [(part.part_id, stream_id, *one) for stream_id, own in seqs.items() for one in own]
    table = pa.Table.from_arrays(
        [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), _RANGES.types, strict=True)], schema=_RANGES
    )
    with registered(connection, "sealed_in", table):
        connection.execute(_ADD_RANGES)


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
