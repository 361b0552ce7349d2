"""What happened with alerts and actions: the last rows of two tables, written in one errand a look."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import duckdb
import msgspec

from kvtrail_collector.alerts.shapes import AuditRow, DeadLetter

MOST_KEPT: Final = 20_000
"""Rows of each table; the oldest go first."""

_BODY_BYTES: Final = 4_096
_ADD_AUDIT: Final = "INSERT INTO alert_audit VALUES (?, ?, ?, ?, ?, ?, ?)"
_ADD_DEAD: Final = "INSERT INTO webhook_dead_letters VALUES (?, ?, ?, ?, ?, ?, ?)"
_TRIM: Final = """
DELETE FROM {table} WHERE wall_ns < (SELECT wall_ns FROM {table} ORDER BY wall_ns DESC LIMIT 1 OFFSET {most})
"""
_LAST: Final = "SELECT wall_ns, engine, what, subject, rule, version, detail FROM alert_audit ORDER BY rowid DESC LIMIT ?"
_LAST_DEAD: Final = """
SELECT wall_ns, target, webhook_id, engine, attempts, reason FROM webhook_dead_letters ORDER BY rowid DESC LIMIT ?
"""


class What(StrEnum):
    """What happened."""

    FIRED = "fired"
    CLEARED = "cleared"
    REQUESTED = "requested"
    RELEASED = "released"
    RELEASED_BY_HAND = "released_by_hand"
    REQUESTED_BY_HAND = "requested_by_hand"
    DELIVERED = "delivered"
    UNDELIVERED = "undelivered"
    APPLIED = "applied"
    ENDED_BY_ENGINE = "ended_by_engine"
    STALLED = "stalled"


class DeadLetterBody(msgspec.Struct, frozen=True):
    """A dead letter with what it said."""

    letter: DeadLetter
    body: bytes


def write_audit(connection: duckdb.DuckDBPyConnection, rows: Sequence[AuditRow], dead: Sequence[DeadLetterBody]) -> None:
    """Add rows. Runs on the writer's thread, in its transaction; a millisecond for a few."""
    for row in rows:
        connection.execute(_ADD_AUDIT, msgspec.structs.astuple(row))
    for one in dead:
        connection.execute(_ADD_DEAD, [*msgspec.structs.astuple(one.letter), one.body[:_BODY_BYTES]])
    for table in ("alert_audit", "webhook_dead_letters"):
        connection.execute(_TRIM.format(table=table, most=MOST_KEPT - 1))


def last_audit(cursor: duckdb.DuckDBPyConnection, most: int) -> tuple[AuditRow, ...]:
    """The last things that happened, the newest first."""
    return tuple(AuditRow(*row) for row in cursor.execute(_LAST, [most]).fetchall())


def last_dead(cursor: duckdb.DuckDBPyConnection, most: int) -> tuple[DeadLetter, ...]:
    """The last dead letters, the newest first."""
    return tuple(DeadLetter(*row) for row in cursor.execute(_LAST_DEAD, [most]).fetchall())
