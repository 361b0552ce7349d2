"""What the watch found, kept in the store: for `kvtrail sql`, and so that a collector that starts again goes on counting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import duckdb

from kvtrail_collector.invariants.found import Found
from kvtrail_collector.invariants.stream_watch import Progress, Sort

_MOST_ROWS: Final = 10_000
_READ: Final = "SELECT stream_id, code, tier, what, cases, seqs, first_ns, last_ns FROM stream_verdicts"
_READ_WATCHES: Final = "SELECT stream_id, until_seq FROM stream_watches"
_BOUND: Final = """
DELETE FROM stream_verdicts WHERE rowid NOT IN (SELECT rowid FROM stream_verdicts ORDER BY stream_id DESC, last_ns DESC LIMIT ?)
"""


class KeptStream(NamedTuple):
    """What is to be kept of one stream."""

    found: Mapping[Sort, Found]
    progress: Progress
    unknown: tuple[str, ...]


def read_kept(cursor: duckdb.DuckDBPyConnection) -> tuple[dict[int, dict[Sort, Found]], dict[int, int]]:
    """What was found before, by stream, and up to which seq each was looked at."""
    found: dict[int, dict[Sort, Found]] = {}
    for stream_id, code, tier, what, cases, seqs, first_ns, last_ns in cursor.execute(_READ).fetchall():
        found.setdefault(stream_id, {})[code, tier, what] = Found(code, tier, what, cases, tuple(seqs), first_ns, last_ns)
    return found, dict(cursor.execute(_READ_WATCHES).fetchall())


def write_kept(connection: duckdb.DuckDBPyConnection, streams: Mapping[int, KeptStream]) -> None:
    """Put these in the place of what was kept of the same streams. On the writer's thread; milliseconds."""
    for stream_id, kept in streams.items():
        connection.execute("DELETE FROM stream_verdicts WHERE stream_id = ?", [stream_id])
        connection.execute("DELETE FROM stream_watches WHERE stream_id = ?", [stream_id])
        watch = [stream_id, kept.progress.until_seq, kept.progress.missed, list(kept.unknown)]
        connection.execute("INSERT INTO stream_watches VALUES (?, ?, ?, ?)", watch)
        for one in kept.found.values():
            row = [stream_id, one.code, one.tier, one.what, one.cases, list(one.seqs), one.first_ns, one.last_ns]
            connection.execute("INSERT INTO stream_verdicts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.execute(_BOUND, [_MOST_ROWS])
