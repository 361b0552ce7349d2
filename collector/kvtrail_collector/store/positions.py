"""How far each partition of a source is stored: written in the transaction of the rows, so that neither is ever ahead.

Positions form a chain: each names the one that it follows, and the store takes it only there. So a batch that failed is
never skipped because a later one of its partition went through.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import duckdb
import pyarrow as pa

from kvtrail_collector.errors import PositionMoved

_TYPES: Final[dict[str, pa.DataType]] = {
    "source": pa.utf8(),
    "partition": pa.int32(),
    "next_offset": pa.int64(),
    "expired": pa.int64(),
}
_SCHEMA: Final = pa.schema(_TYPES)
_LOAD: Final = "SELECT source, partition, next_offset, expired FROM source_positions"
_SET: Final = """
MERGE INTO source_positions AS old USING positions_in AS new ON old.source = new.source AND old.partition = new.partition
WHEN MATCHED THEN UPDATE SET next_offset = new.next_offset, expired = new.expired
WHEN NOT MATCHED THEN INSERT BY NAME
"""


class Place(NamedTuple):
    """One partition of one source, as `kafka:kvtrail` and 3."""

    source: str
    partition: int


class Reached(NamedTuple):
    """How far a place is stored."""

    next_offset: int
    """The first offset that is not stored yet."""
    expired: int
    """Offsets that the source's retention took before they were read, ever."""


START: Final = Reached(0, 0)
"""Where a place begins of which nothing is stored."""

Positions = Mapping[Place, Reached]


class Position(NamedTuple):
    """Where one batch stands in its source: it follows `after`, and `next_offset` follows it."""

    place: Place
    after: int
    next_offset: int
    expired: int = 0


def advance(positions: Positions, steps: Iterable[Position | None]) -> dict[Place, Reached]:
    """What changes when these steps are stored, in their order. Pure; a batch without a position changes nothing.

    Raises:
        PositionMoved: a step does not follow what is stored: one before it failed, or it is stored already.
    """
    changed: dict[Place, Reached] = {}
    for step in steps:
        if step is None:
            continue
        known = changed.get(step.place) or positions.get(step.place, START)
        if known.next_offset != step.after:
            raise PositionMoved(
                f"a batch follows offset {step.after}, the store is at {known.next_offset}",
                where=f"{step.place.source}[{step.place.partition}]",
                do="read again from the stored offset; the source does so by itself",
            )
        changed[step.place] = Reached(step.next_offset, known.expired + step.expired)
    return changed


def load_positions(connection: duckdb.DuckDBPyConnection) -> dict[Place, Reached]:
    """The positions as the last commit left them."""
    return {Place(row[0], row[1]): Reached(row[2], row[3]) for row in connection.execute(_LOAD).fetchall()}


def write_positions(connection: duckdb.DuckDBPyConnection, changed: Positions) -> None:
    """Write what changed. Runs on the writer's thread, inside the transaction of the rows."""
    if not changed:
        return
    rows = [(*place, *reached) for place, reached in changed.items()]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), _SCHEMA, strict=True)]
    connection.register("positions_in", pa.Table.from_arrays(columns, schema=_SCHEMA))
    try:
        connection.execute(_SET)
    finally:
        connection.unregister("positions_in")
