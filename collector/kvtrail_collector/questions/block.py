"""The life of one block, out of all stored events."""

from __future__ import annotations

from itertools import groupby
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import Epoch, Rank, Stream
from kvtrail_schema.kinds import Kind

from kvtrail_collector.block_life import BlockLife, Mark, copies_of, unknown_of
from kvtrail_collector.facts_rows import Interval, rows_of_table
from kvtrail_collector.ledger_rows import identity_of
from kvtrail_collector.questions.rows import StreamRow, event_rows_named, event_rows_of_block
from kvtrail_collector.questions.silences import Silences, silences_of
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
_LASTING: Final = f"{Tier.NVME.value}, {Tier.REMOTE.value}"
_TIER: Final = f"CASE WHEN kind IN ({_MOVES}) THEN dst ELSE tier END"
_TOLD: Final = f"""
    SELECT engine, epoch, rank, t_ns, seq, kind, {_TIER} AS tier, slot, reason, ns,
        stream_id, CASE WHEN {_TIER} IN ({_LASTING}) THEN home ELSE stream_id END AS holder
    FROM events JOIN homes USING (stream_id) WHERE stream_id IN (SELECT unnest($streams::INTEGER[]))
"""  # noqa: S608  # constants of ours
_MARKS: Final = f"""
WITH homes AS (SELECT stream_id, engine, epoch, rank, min(stream_id) OVER (PARTITION BY engine, rank) AS home FROM streams
), placed AS ({_TOLD} AND block = $block AND kind IN ({_PLACED})
), places AS (SELECT DISTINCT holder, tier, slot FROM placed WHERE slot IS NOT NULL
), others AS ({_TOLD} AND block != $block AND kind IN ({_MADE})
), clears AS ({_TOLD} AND kind = {_CLEARED} AND (ns IS NULL OR ns IN (SELECT ns FROM placed WHERE ns IS NOT NULL))
)
SELECT engine, epoch, rank, t_ns, seq, kind, tier, slot, reason, own, stream_id FROM (
    SELECT *, true AS own FROM placed
    UNION ALL SELECT *, false AS own FROM others SEMI JOIN places USING (holder, tier, slot)
    UNION ALL SELECT * REPLACE (NULL AS slot), false AS own FROM clears
)
"""  # noqa: S608  # constants of ours


def block_life(cursor: duckdb.DuckDBPyConnection, wanted: list[StreamRow], block: int, at_ns: int | None) -> BlockLife | None:
    """What is known of a block; None where no event names it. Worker thread: few passes over the events' blocks and kinds.

    Without a moment, copies are told as they were where what is stored of their process ends: of one that runs, events are
    always on their way.
    """
    table = event_rows_of_block(cursor, wanted, block)
    if not table.num_rows:
        return None
    engines = set(table["engine"].to_pylist())
    own = [stream for stream in wanted if stream.engine in engines]
    asked = {"block": block, "streams": [stream.stream_id for stream in own]}
    told = cursor.execute(_MARKS, asked).fetchall()
    marks = [Mark(Stream(engine, Epoch(epoch), Rank(rank)), *rest) for engine, epoch, rank, *rest in told]
    found = silences_of(cursor, own)
    holes = _holes(found, at_ns)
    return BlockLife(
        block=f"{block:016x}",
        at_ns=at_ns,
        copies=copies_of([*marks, *_ends(found)], holes, at_ns),
        chain=_chain(cursor, own, table),
        unknown=unknown_of(holes, marks),
    )


def _holes(found: Silences, at_ns: int | None) -> dict[Stream, list[Interval]]:
    """By stream, what is missing at a moment, or of what was told."""
    holes: dict[Stream, list[Interval]] = {}
    for hole in found.holes:
        if at_ns is not None or not hole.is_open:
            holes.setdefault(hole.stream, []).append(hole.span)
    return holes


def _ends(found: Silences) -> list[Mark]:
    """The ends of processes, each for the memories that it takes with it; behind all that is told of the same moment."""
    return [
        Mark(identity_of(stream), t_ns, 2**64, Kind.AGENT_STOPPED.value, tier, None, None, own=False, heard=stream.stream_id)
        for stream, t_ns in found.endings
        for tier in (Tier.GPU.value, Tier.HOST.value)
    ]


def _chain(cursor: duckdb.DuckDBPyConnection, wanted: list[StreamRow], table: pa.Table) -> tuple[Link, ...]:
    """What befell the block, each event followed by what caused it; process by process, since each draws ids of its own."""
    links: list[Link] = []
    for _, streams in groupby(sorted(wanted, key=_process_of), key=_process_of):
        own = list(streams)
        if len(links) < MAX_LINKS:
            links += _chain_of(cursor, own, table)
    return tuple(links[:MAX_LINKS])


def _process_of(stream: StreamRow) -> tuple[str, int]:
    """Within what an id names one event: all ranks of an engine, from one start to the next."""
    return stream.engine, stream.epoch


def _chain_of(cursor: duckdb.DuckDBPyConnection, process: list[StreamRow], table: pa.Table) -> tuple[Link, ...]:
    """What befell the block in one process."""
    own = table.filter((pc.field("engine") == process[0].engine) & (pc.field("epoch") == process[0].epoch))
    if not own.num_rows:
        return ()
    tables, seen = [own], set[int]()
    while len(tables) < MAX_LINKS:
        causes = {cause for cause in tables[-1]["cause"].to_pylist() if cause is not None} - seen
        if not causes:
            break
        seen |= causes
        tables.append(event_rows_named(cursor, process, sorted(causes)))
    rows = rows_of_table(pa.concat_tables(tables))
    starts = np.flatnonzero((rows.ids["block"] == _block_of(table)) & (rows.kind != 0))
    return links_from(rows, starts[np.argsort(rows.t_ns[starts], kind="stable")].tolist())


def _block_of(table: pa.Table) -> np.uint64:
    """The block that all rows of a table name."""
    return np.uint64(table["block"][0].as_py())
