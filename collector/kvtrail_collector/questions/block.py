"""The life of one block, out of all stored events."""

from __future__ import annotations

from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import Epoch, Rank, Stream
from kvtrail_schema.kinds import Kind

from kvtrail_collector.block_life import BlockLife, Mark, copies_of, unknown_of
from kvtrail_collector.facts_rows import merged, rows_of_table
from kvtrail_collector.ledger_rows import holes_of
from kvtrail_collector.questions.rows import StreamRow, event_rows_named, event_rows_of_block
from kvtrail_collector.why_chain import MAX_LINKS, Link, links_from

_PLACED: Final = ", ".join(
    str(kind.value)
    for kind in (
        *(Kind.BLOCK_CREATED, Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN, Kind.EVICTED, Kind.INVALIDATED),
        *(Kind.ATTENTION_READ, Kind.BLOCK_PINNED, Kind.BLOCK_UNPINNED, Kind.PREFIX_HIT),
    )
)
_MOVES: Final = f"{Kind.SWAP_IN_LOADED.value}, {Kind.SWAP_OUT_WRITTEN.value}"
_CLEARED: Final = Kind.TIER_CLEARED.value
_MADE: Final = f"{Kind.BLOCK_CREATED.value}, {_MOVES}"

_MARKS: Final = f"""
WITH placed AS (
    SELECT stream_id, t_ns, seq, kind, CASE WHEN kind IN ({_MOVES}) THEN dst ELSE tier END AS tier, slot, reason, ns
    FROM events WHERE block = $block AND stream_id IN (SELECT unnest($streams::INTEGER[])) AND kind IN ({_PLACED})
), places AS (SELECT DISTINCT stream_id, tier, slot FROM placed WHERE slot IS NOT NULL
), others AS (
    SELECT stream_id, t_ns, seq, kind, CASE WHEN kind IN ({_MOVES}) THEN dst ELSE tier END AS tier, slot, reason
    FROM events WHERE block != $block AND kind IN ({_MADE}) AND stream_id IN (SELECT unnest($streams::INTEGER[]))
), ended AS (
    SELECT stream_id, monotonic_ns AS t_ns FROM streams AS old JOIN stream_marks USING (stream_id)
    WHERE EXISTS (FROM streams AS new WHERE new.engine = old.engine AND new.rank = old.rank AND new.stream_id > old.stream_id)
), clears AS (
    SELECT stream_id, t_ns, seq, kind, tier, NULL AS slot, reason FROM events
    WHERE kind = {_CLEARED} AND stream_id IN (SELECT unnest($streams::INTEGER[]))
        AND (ns IS NULL OR ns IN (SELECT ns FROM placed WHERE ns IS NOT NULL))
)
SELECT engine, epoch, rank, t_ns, seq, kind, tier, slot, reason, own FROM (
    SELECT stream_id, t_ns, seq, kind, tier, slot, reason, true AS own FROM placed
    UNION ALL SELECT *, false AS own FROM others SEMI JOIN places USING (stream_id, tier, slot)
    UNION ALL SELECT *, false AS own FROM clears
    UNION ALL SELECT ended.stream_id, ended.t_ns, 0, {Kind.AGENT_STOPPED.value}, places.tier, places.slot, NULL, false
        FROM ended JOIN places USING (stream_id) WHERE places.tier IN ({Tier.GPU.value}, {Tier.HOST.value})
) JOIN streams USING (stream_id)
"""  # noqa: S608  # constants of ours


def block_life(cursor: duckdb.DuckDBPyConnection, wanted: list[StreamRow], block: int, at_ns: int | None) -> BlockLife | None:
    """What is known of a block; None where no event names it. Worker thread: three passes over the events' blocks and kinds."""
    asked = {"block": block, "streams": [stream.stream_id for stream in wanted]}
    told = cursor.execute(_MARKS, asked).fetchall()
    marks = [Mark(Stream(engine, Epoch(epoch), Rank(rank)), *rest) for engine, epoch, rank, *rest in told]
    table = event_rows_of_block(cursor, wanted, block)
    if not table.num_rows:
        return None
    holes = merged(hole for stream in wanted for hole in holes_of(cursor, stream.stream_id))
    return BlockLife(
        block=f"{block:016x}",
        at_ns=at_ns,
        copies=copies_of(marks, holes, at_ns),
        chain=_chain(cursor, wanted, table),
        unknown=unknown_of(holes, marks),
    )


def _chain(cursor: duckdb.DuckDBPyConnection, wanted: list[StreamRow], table: pa.Table) -> tuple[Link, ...]:
    """What befell the block, each event followed by what caused it."""
    tables, seen = [table], set[int]()
    while len(tables) < MAX_LINKS:
        causes = {cause for cause in tables[-1]["cause"].to_pylist() if cause is not None} - seen
        if not causes:
            break
        seen |= causes
        tables.append(event_rows_named(cursor, wanted, sorted(causes)))
    rows = rows_of_table(pa.concat_tables(tables))
    own = np.flatnonzero((rows.ids["block"] == _block_of(table)) & (rows.kind != 0))
    return links_from(rows, own[np.argsort(rows.t_ns[own], kind="stable")].tolist())


def _block_of(table: pa.Table) -> np.uint64:
    """The block that all rows of a table name."""
    return np.uint64(table["block"][0].as_py())
