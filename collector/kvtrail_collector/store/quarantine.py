"""Keeps batches that could not be read: why, from whom, and the first bytes of the newest, bounded in size and number.

A row a batch, a hundred thousand of them, so that a flood of bad ones can be counted and told apart by reason. Bytes are what
takes room: only the newest thousand rows have them, 64 MB at most.
"""

from dataclasses import dataclass
from typing import Final

import duckdb

KEPT_BYTES: Final = 64 * 1024
"""How much of a body is kept."""

KEPT_BODIES: Final = 1_000
"""Of how many batches a body is kept; the oldest lose theirs first."""

KEPT_ROWS: Final = 100_000
"""How many batches are kept; the oldest go first."""

_TRIM_EVERY: Final = 100
"""Rows between two looks at what is too much: a look reads the table."""

_ADD: Final = """
INSERT INTO quarantine (received_wall_ns, reason, engine, size_bytes, body, source, partition, record_offset)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_COUNT: Final = "SELECT count(*) FROM quarantine"
_EMPTY: Final = """
UPDATE quarantine SET body = ''::BLOB
WHERE octet_length(body) > 0 AND rowid NOT IN (SELECT rowid FROM quarantine ORDER BY rowid DESC LIMIT ?)
"""
_TRIM: Final = "DELETE FROM quarantine WHERE rowid NOT IN (SELECT rowid FROM quarantine ORDER BY rowid DESC LIMIT ?)"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One batch that could not be read; `engine` is None where not even that could be."""

    received_wall_ns: int
    reason: str
    engine: str | None
    size_bytes: int
    body: bytes
    source: str | None = None
    """Where it came from, as `kafka:kvtrail`; None for a call."""
    partition: int | None = None
    record_offset: int | None = None

    def keep(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Write it. Runs on the writer's thread, in a transaction."""
        row = [self.received_wall_ns, self.reason, self.engine, self.size_bytes, self.body[:KEPT_BYTES]]
        connection.execute(_ADD, [*row, self.source, self.partition, self.record_offset])
        _trim(connection)


def _trim(connection: duckdb.DuckDBPyConnection) -> None:
    """Let go what is too much, now and then."""
    rows = connection.execute(_COUNT).fetchall()[0][0]
    if rows % _TRIM_EVERY == 0:
        connection.execute(_EMPTY, [KEPT_BODIES])
    if rows >= KEPT_ROWS + _TRIM_EVERY:
        connection.execute(_TRIM, [KEPT_ROWS])
