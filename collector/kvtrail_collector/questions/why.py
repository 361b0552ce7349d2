"""Why one stored request was slow: the few events that say so, out of all that are stored."""

from __future__ import annotations

from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
from kvtrail_schema.identity import RequestId

from kvtrail_collector.facts_build import recording_of_table
from kvtrail_collector.ledger_rows import holes_of, identity_of, last_ns, lives, rows_for
from kvtrail_collector.questions.requests import Found
from kvtrail_collector.questions.rows import COLUMNS, StreamRow, event_rows_named, event_rows_of_others, event_rows_of_request
from kvtrail_collector.why import Why, why_recording
from kvtrail_collector.why_chain import MAX_LINKS

_AROUND_NS: Final = 500_000_000
"""How long around a request others are looked at, for whose work it stood behind."""

_LAST: Final = "SELECT max(t_ns) FROM events WHERE stream_id = ? AND req = ?"
_OWN_CAUSES: Final = "SELECT DISTINCT cause FROM events WHERE stream_id = ? AND req = ? AND cause IS NOT NULL"
_ROWS_COLUMNS: Final = ("kind", "tier", *COLUMNS)


def why_stored(cursor: duckdb.DuckDBPyConnection, found: Found, own: list[StreamRow]) -> Why | None:
    """Explain one request; None where its arrival is not stored. Worker thread; tens of milliseconds, 0.2 s where its
    engine tells of 100,000 events a second.

    Args:
        cursor: on the store.
        found: the request.
        own: the streams of its engine, in which causes may lie.
    """
    stream, request = found.stream, np.array([found.request], dtype=np.uint64)
    life = lives(cursor, stream.stream_id, request)
    if not len(life.req):
        return None
    now_ns = last_ns(cursor, stream.stream_id)
    span = int(life.arrived_ns[0]), now_ns if life.end_ns[0] < 0 else int(life.end_ns[0])
    around = span[0] - _AROUND_NS, max(span[1], _last_of(cursor, found)) + _AROUND_NS
    tables = [
        # Of a row that is there twice the first one counts: those that are whole come first.
        event_rows_of_request(cursor, stream, found.request),
        *_causes(cursor, found, own),
        rows_for(cursor, stream, request, span, _ROWS_COLUMNS),
        event_rows_of_others(cursor, stream, around),
    ]
    holes = {identity_of(stream): holes_of(cursor, stream.stream_id)}
    table = pa.concat_tables(tables, promote_options="permissive")
    return why_recording(recording_of_table(table, holes, now_ns=now_ns), RequestId(found.request))


def _last_of(cursor: duckdb.DuckDBPyConnection, found: Found) -> int:
    """The time of the last event of a request: its tokens are explained too."""
    row = cursor.execute(_LAST, [found.stream.stream_id, found.request]).fetchone()
    return int(row[0]) if row and row[0] is not None else 0


def _causes(cursor: duckdb.DuckDBPyConnection, found: Found, own: list[StreamRow]) -> list[pa.Table]:
    """The events behind a request's own, and those behind them, as far back as is told."""
    wanted = {int(row[0]) for row in cursor.execute(_OWN_CAUSES, [found.stream.stream_id, found.request]).fetchall()}
    tables: list[pa.Table] = []
    seen: set[int] = set()
    while wanted and len(tables) < MAX_LINKS:
        tables.append(event_rows_named(cursor, own, sorted(wanted)))
        seen |= wanted
        wanted = {cause for cause in tables[-1]["cause"].to_pylist() if cause is not None} - seen
    return tables
