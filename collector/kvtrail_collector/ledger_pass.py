"""One pass over touched requests: whose ledgers to compute now, and the transaction that keeps them.

Ledgers are computed outside ingest, on a cursor of their own. A request whose interval has ended is computed once its
stream has gone on for a while, so that rows that were told after its end are there; rows that come later still touch
it again. A hole in seq that is filled, or appears, touches all requests that lived through it. Requests that have not
ended are noted, and computed by whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
from kvtrail_schema.batch import StreamState

from kvtrail_collector.facts import EndKind
from kvtrail_collector.facts_columns import END_KINDS
from kvtrail_collector.facts_rows import IdArray, Interval
from kvtrail_collector.ledger_accounts import SCHEMA, account
from kvtrail_collector.ledger_open import changed_holes, seen
from kvtrail_collector.ledger_rows import Lives, holes_of, lives
from kvtrail_collector.questions.rows import StreamRow
from kvtrail_collector.store import Touched

SETTLED_NS: Final = 1_000_000_000
"""How long its stream must have gone on after a request's end, or been silent."""
REQUESTS_AT_ONCE: Final = 5_000

_RUNNING: Final = END_KINDS.index(EndKind.RUNNING)
_MARKS: Final = "SELECT monotonic_ns, heard_wall_ns, state FROM stream_marks WHERE stream_id = ?"
_DELETE: Final = """
DELETE FROM request_ledgers AS old USING done_in AS done WHERE old.stream_id = done.stream_id AND old.req = done.req
"""
_INSERT: Final = "INSERT INTO request_ledgers BY NAME FROM ledgers_in"
_TOUCH_AGAIN: Final = """
INSERT INTO touched_requests BY NAME
SELECT stream_id, req, 1 + (SELECT coalesce(max(touch), 0) FROM touched_requests) AS touch
FROM request_ledgers WHERE stream_id = ? AND arrived_ns < ? AND end_ns > ?
"""


@dataclass(frozen=True, slots=True)
class Computed:
    """What a pass over one stream found: rows to keep, requests that are done with, and holes where they changed."""

    stream_id: int
    rows: pa.Table
    done: IdArray
    holes: tuple[Interval, ...]
    changed: tuple[Interval, ...]

    def __bool__(self) -> bool:
        """Whether there is anything to write."""
        return bool(len(self.done) or self.changed)


def compute(
    cursor: duckdb.DuckDBPyConnection,
    stream: StreamRow,
    touched: IdArray,
    now_wall_ns: int,
    announce: Callable[[int, int], None],
) -> Computed:
    """The ledgers of those of some touched requests of a stream that can be computed now. Worker thread.

    What comes while they are computed must touch them: so up to when they go is announced before events are looked at.
    """
    found = lives(cursor, stream.stream_id, touched)
    holes = holes_of(cursor, stream.stream_id)
    ended = found.end_ns >= 0
    settled = ended & (found.end_ns + SETTLED_NS <= _reached_ns(cursor, stream.stream_id, now_wall_ns))
    tables = [_running(stream, found, ~ended)]
    places = np.flatnonzero(settled)
    if len(places):
        announce(stream.stream_id, int(found.end_ns[places].max()))
    for own in np.array_split(places, -(-len(places) // REQUESTS_AT_ONCE) or 1):
        if len(own):
            span = int(found.arrived_ns[own].min()), int(found.end_ns[own].max())
            tables.append(account(cursor, stream, found.req[own], span, holes))
    return Computed(
        stream_id=stream.stream_id,
        rows=pa.concat_tables(tables),
        done=np.setdiff1d(touched, found.req[ended & ~settled]),
        holes=tuple(holes),
        changed=changed_holes(cursor, stream.stream_id, holes),
    )


def _reached_ns(cursor: duckdb.DuckDBPyConnection, stream_id: int, now_wall_ns: int) -> int:
    """Up to when nothing more is to be expected of a stream: when it was last heard of; for ever once it is silent."""
    row = cursor.execute(_MARKS, [stream_id]).fetchone()
    monotonic_ns, heard_wall_ns, state = row or (0, 0, StreamState.RUNNING.value)
    silent = state != StreamState.RUNNING.value or now_wall_ns - heard_wall_ns > SETTLED_NS
    return 2**63 - 1 if silent else int(monotonic_ns)


def _running(stream: StreamRow, found: Lives, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Table:
    """Notes of requests that have not ended."""
    count = int(chosen.sum())
    notes = pa.table(
        {
            "stream_id": np.full(count, stream.stream_id, dtype=np.int32),
            "req": found.req[chosen],
            "arrived_ns": found.arrived_ns[chosen],
            "end_ns": found.arrived_ns[chosen],
            "end_kind": np.full(count, _RUNNING, dtype=np.uint8),
        }
    )
    return pa.Table.from_pylist([{**note, **_NOTHING_YET} for note in notes.to_pylist()], schema=SCHEMA)


_NOTHING_YET: Final[dict[str, list[int]]] = {"labels": [], "parts_ns": [], "hidden_ns": []}


def keep(connection: duckdb.DuckDBPyConnection, touched: Touched, computed: list[Computed]) -> None:
    """Write what was computed, and forget what touched it. Runs on the writer's thread, in one transaction."""
    done = _done(touched, computed)
    with seen(connection, "done_in", done.requests):
        connection.execute(_DELETE)
    with seen(connection, "ledgers_in", pa.concat_tables([each.rows for each in computed])):
        connection.execute(_INSERT)
    for each in computed:
        if each.changed:
            _keep_holes(connection, each)
    done.forget(connection)


def _keep_holes(connection: duckdb.DuckDBPyConnection, computed: Computed) -> None:
    """Note the holes of a stream; requests that lived through one that came or went are touched."""
    connection.execute("DELETE FROM ledger_holes WHERE stream_id = ?", [computed.stream_id])
    for start, end in computed.holes:
        connection.execute("INSERT INTO ledger_holes VALUES (?, ?, ?)", [computed.stream_id, start, end])
    for start, end in computed.changed:
        connection.execute(_TOUCH_AGAIN, [computed.stream_id, end, start])


def _done(touched: Touched, computed: list[Computed]) -> Touched:
    """Those touched requests that are done with."""
    stream, req = touched.requests["stream_id"].to_numpy(), touched.requests["req"].to_numpy()
    done = np.zeros(len(req), dtype=np.bool_)
    for each in computed:
        done |= (stream == each.stream_id) & np.isin(req, each.done)
    return Touched(touched.requests.filter(pa.array(done)))
