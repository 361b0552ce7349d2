"""Whose ledgers are open: what is kept of them, if anything, may not be what the stored events say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import duckdb
import pyarrow as pa

from kvtrail_collector.facts_rows import Interval
from kvtrail_collector.ledger_rows import holes_of
from kvtrail_collector.store import linked_requests, streams_with_late_ops

SCHEMA: Final = pa.schema([("stream_id", pa.int32()), ("req", pa.uint64())])
"""Requests."""

_TOUCHED: Final = """
SELECT stream_id, req FROM touched_requests WHERE stream_id IN (SELECT unnest(?::INTEGER[]))
UNION SELECT stream_id, req FROM request_ledgers WHERE end_kind = 4 AND stream_id IN (SELECT unnest(?::INTEGER[]))
"""
_WITH_HOLES: Final = """
SELECT stream_id FROM seq_ranges GROUP BY stream_id HAVING count(*) > 1 UNION SELECT stream_id FROM ledger_holes
"""
_HOLES: Final = "SELECT start_ns, end_ns FROM ledger_holes WHERE stream_id = ? ORDER BY start_ns"
_WITHIN: Final = """
SELECT DISTINCT stream_id, req
FROM request_ledgers, (SELECT unnest(?::BIGINT[]) AS start_ns, unnest(?::BIGINT[]) AS until_ns) AS changed
WHERE stream_id = ? AND arrived_ns < changed.until_ns AND end_ns > changed.start_ns
"""


@contextmanager
def one_moment(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """All that is asked in the block is answered from the same commits. The cursor must not be in a transaction."""
    cursor.begin()
    try:
        yield
    finally:
        cursor.rollback()


@contextmanager
def seen(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> Iterator[None]:
    """Let SQL see a table under a name."""
    connection.register(name, table)
    try:
        yield
    finally:
        connection.unregister(name)


def open_requests(cursor: duckdb.DuckDBPyConnection, stream_ids: list[int]) -> pa.Table:
    """The requests of some streams that run, of which rows came since, or whose transfers or holes changed since.

    A table of `stream_id` and `req`, each once or more. Worker thread; milliseconds where nothing came late.
    """
    found = [cursor.execute(_TOUCHED, [stream_ids, stream_ids]).to_arrow_table()]
    late = sorted(set(streams_with_late_ops(cursor)) & set(stream_ids))
    if late:
        found.append(linked_requests(cursor, late))
    for stream_id in sorted(with_holes(cursor) & set(stream_ids)):
        changed = changed_holes(cursor, stream_id, holes_of(cursor, stream_id))
        if changed:
            starts, ends = zip(*changed, strict=True)
            found.append(cursor.execute(_WITHIN, [list(starts), list(ends), stream_id]).to_arrow_table())
    return pa.concat_tables([table.cast(SCHEMA) for table in found])


def with_holes(cursor: duckdb.DuckDBPyConnection) -> set[int]:
    """The streams that have holes, or with whose holes ledgers are kept."""
    return {int(row[0]) for row in cursor.execute(_WITH_HOLES).fetchall()}


def changed_holes(cursor: duckdb.DuckDBPyConnection, stream_id: int, holes: list[Interval]) -> tuple[Interval, ...]:
    """The holes of a stream that are new, or gone, since its ledgers were kept."""
    known = {(int(start), int(end)) for start, end in cursor.execute(_HOLES, [stream_id]).fetchall()}
    return tuple(sorted(set(holes) ^ known))
