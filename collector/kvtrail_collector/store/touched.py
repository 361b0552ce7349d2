"""Requests of which rows arrived: what is computed from them outside ingest has to be computed again.

Each commit adds the requests of its rows, under a touch: a number that grows from commit to commit while rows wait here.
Whoever computes takes some, computes on a cursor of its own, and then forgets them up to the touches that it saw, on the
writer's thread. A request that was touched again meanwhile stays, so no row that came late is ever missed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import duckdb
import pyarrow as pa

_TAKE: Final = """
SELECT stream_id, req, max(touch) AS touch FROM touched_requests GROUP BY ALL ORDER BY touch, stream_id, req LIMIT ?
"""
_FORGET: Final = """
DELETE FROM touched_requests AS old USING forget_in AS gone
WHERE old.stream_id = gone.stream_id AND old.req = gone.req AND old.touch <= gone.touch
"""


def touch(source: str) -> str:
    """The statement that touches the requests of a table: new rows, expired ones, or all requests after a rebuild."""
    return f"""
    INSERT INTO touched_requests BY NAME
    SELECT DISTINCT stream_id, req, 1 + (SELECT coalesce(max(touch), 0) FROM touched_requests) AS touch
    FROM {source} WHERE req IS NOT NULL
    """  # noqa: S608  # names of ours


class Touched(NamedTuple):
    """Some requests, the longest untouched first: a table of `stream_id`, `req` and the last `touch` of each."""

    requests: pa.Table

    def __bool__(self) -> bool:
        return bool(self.requests.num_rows)

    def forget(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Say that they are computed: to be run by `Store.run`, in the transaction that writes what was computed.

        Those that were touched again since they were taken stay.
        """
        connection.register("forget_in", self.requests)
        try:
            connection.execute(_FORGET)
        finally:
            connection.unregister("forget_in")


def take_touched(cursor: duckdb.DuckDBPyConnection, limit: int) -> Touched:
    """The requests to compute next, at most so many. Runs on any cursor of `Store.read`; milliseconds."""
    return Touched(cursor.execute(_TAKE, [limit]).to_arrow_table())
