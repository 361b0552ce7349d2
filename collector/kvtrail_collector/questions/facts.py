"""What the stream says of itself: on which device it ran, and which kinds of event it has."""

from typing import Final

import duckdb
import msgspec
from kvtrail_schema.kinds import Kind

_MANIFESTS: Final = f"""
SELECT engine, "text" FROM events JOIN streams USING (stream_id) JOIN stream_marks USING (stream_id)
WHERE kind = {Kind.MANIFEST_DECLARED.value} AND "text" IS NOT NULL ORDER BY heard_wall_ns, stream_id, t_ns
"""  # noqa: S608  # a constant of ours
_KINDS: Final = "SELECT DISTINCT kind FROM events"


class _Manifest(msgspec.Struct, frozen=True):
    """The one member of a manifest that every answer repeats."""

    device: str | None = None


def device(cursor: duckdb.DuckDBPyConnection, engine: str | None = None) -> str | None:
    """The device of an engine, or of the one last heard of: `cuda`, `cpu-emulated`, or None where nothing says."""
    return devices(cursor).get(engine)


def devices(cursor: duckdb.DuckDBPyConnection) -> dict[str | None, str | None]:
    """The device of each engine by its newest manifest, and under None that of the engine last heard of."""
    found: dict[str | None, str | None] = {}
    for engine, text in cursor.execute(_MANIFESTS).fetchall():
        found[engine] = found[None] = _device(text)
    return found


def _device(manifest: str) -> str | None:
    """What a manifest says of it."""
    try:
        return msgspec.json.decode(manifest, type=_Manifest).device
    except msgspec.MsgspecError:
        return None


def kinds_present(cursor: duckdb.DuckDBPyConnection) -> frozenset[int]:
    """The kinds of which there is at least one event."""
    return frozenset(int(row[0]) for row in cursor.execute(_KINDS).fetchall())
