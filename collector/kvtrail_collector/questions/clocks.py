"""How monotonic times become wall times, by the calibration that travels with each batch."""

from __future__ import annotations

from typing import Final

import duckdb

from kvtrail_collector.questions.rows import StreamRow

_OFFSETS: Final = """
SELECT wall_ns - monotonic_ns FROM stream_marks WHERE stream_id IN (SELECT unnest(?::INTEGER[])) AND wall_ns IS NOT NULL
ORDER BY heard_wall_ns DESC
"""
_SAME_CLOCK_NS: Final = 1_000_000_000


def clock_offset_ns(cursor: duckdb.DuckDBPyConnection, wanted: list[StreamRow]) -> int | None:
    """Wall time minus monotonic time of some streams, by the one last heard of; None for clocks of several hosts."""
    offsets = [int(row[0]) for row in cursor.execute(_OFFSETS, [[stream.stream_id for stream in wanted]]).fetchall()]
    if not offsets or max(offsets) - min(offsets) > _SAME_CLOCK_NS:
        return None
    return offsets[0]
