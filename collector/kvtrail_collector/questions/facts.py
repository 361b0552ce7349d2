"""What the stream says of itself: on which device it ran, and which kinds of event it has."""

from typing import Final

import duckdb
import msgspec
from kvtrail_schema.kinds import Kind

_MANIFESTS: Final = 'SELECT "text" FROM events WHERE kind = ? AND "text" IS NOT NULL ORDER BY t_ns DESC LIMIT 1'
_KINDS: Final = "SELECT DISTINCT kind FROM events"


class _Manifest(msgspec.Struct, frozen=True):
    """The one member of a manifest that every answer repeats."""

    device: str | None = None


def device(cursor: duckdb.DuckDBPyConnection) -> str | None:
    """The device of the newest manifest: `cuda`, `cpu-emulated`, or None where nothing says."""
    row = cursor.execute(_MANIFESTS, [Kind.MANIFEST_DECLARED.value]).fetchone()
    try:
        return msgspec.json.decode(row[0], type=_Manifest).device if row else None
    except msgspec.MsgspecError:
        return None


def kinds_present(cursor: duckdb.DuckDBPyConnection) -> frozenset[int]:
    """The kinds of which there is at least one event."""
    return frozenset(int(row[0]) for row in cursor.execute(_KINDS).fetchall())
