"""Keeps batches that could not be read: why, from whom, and their first bytes, bounded in size and number."""

from dataclasses import dataclass
from typing import Final

import duckdb

KEPT_BYTES: Final = 64 * 1024
"""How much of a body is kept."""

KEPT_ROWS: Final = 1_000
"""How many batches are kept; the oldest go first."""

_ADD: Final = """
INSERT INTO quarantine (received_wall_ns, reason, engine, size_bytes, body, source, partition, record_offset)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_TRIM: Final = f"""
DELETE FROM quarantine WHERE rowid NOT IN (SELECT rowid FROM quarantine ORDER BY rowid DESC LIMIT {KEPT_ROWS})
"""  # noqa: S608  # a constant of ours


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
        connection.execute(_TRIM)
