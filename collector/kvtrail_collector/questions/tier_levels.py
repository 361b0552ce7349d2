"""How full tiers are and what waits at them: their newest samples, and the largest of each bucket of time."""

from __future__ import annotations

from typing import Final

import duckdb
import msgspec
from kvtrail_schema.kinds import Kind

from kvtrail_collector.questions.buckets import bucket_ns
from kvtrail_collector.questions.scope import IN_STREAMS, NEWEST_SAMPLED, Chosen
from kvtrail_collector.questions.words import tier_name

_FIELDS: Final = ("capacity_bytes", "used_bytes", "pinned_bytes", "evictable_bytes", "depth", "in_flight", "orphans")
_SAMPLES: Final = f"""
FROM events WHERE kind = {Kind.CAPACITY_SAMPLED.value} AND ns IS NULL AND tier IS NOT NULL
    AND {IN_STREAMS} AND t_ns >= $start_ns AND t_ns < $end_ns
"""  # constants of ours
_EXTENT: Final = f"SELECT min(t_ns), max(t_ns) {_SAMPLES}"  # constants of ours
# Of the process that runs now the newest sample counts; a tier of an engine of several ranks is the sum of theirs.
_NEWEST: Final = f"""
SELECT tier, {", ".join(f"sum({name})::UBIGINT" for name in _FIELDS)}, max(t_ns) FROM (
    SELECT stream_id, tier, max(t_ns) AS t_ns, {", ".join(f"arg_max({name}, t_ns) AS {name}" for name in _FIELDS)}
    {_SAMPLES} AND {NEWEST_SAMPLED} GROUP BY stream_id, tier
) GROUP BY tier ORDER BY tier
"""  # noqa: S608  # constants of ours
_SERIES: Final = f"""
SELECT tier, start_ns, start_ns + max(offset_ns), {", ".join(f"sum({name})::UBIGINT" for name in _FIELDS)} FROM (
    SELECT stream_id, tier, t_ns - t_ns % $bucket_ns AS start_ns, {", ".join(f"max({name}) AS {name}" for name in _FIELDS)}
    {_SAMPLES} GROUP BY ALL
) JOIN (SELECT stream_id, wall_ns - monotonic_ns AS offset_ns FROM stream_marks) USING (stream_id)
GROUP BY tier, start_ns ORDER BY tier, start_ns
"""  # noqa: S608  # constants of ours


class TierLevel(msgspec.Struct, frozen=True):
    """What a tier holds and what waits at it; None where its engine does not say."""

    capacity_bytes: int | None
    used_bytes: int | None
    pinned_bytes: int | None
    evictable_bytes: int | None
    depth: int | None
    in_flight: int | None
    orphans: int | None


class TierNow(msgspec.Struct, frozen=True):
    """A tier as its newest samples have it, summed over ranks."""

    tier: str
    at_ns: int
    level: TierLevel


class TierBucket(msgspec.Struct, frozen=True):
    """The largest of each figure in one bucket of time, summed over ranks."""

    tier: str
    start_ns: int
    wall_ns: int
    level: TierLevel


class TierLevels(msgspec.Struct, frozen=True):
    """All tiers, now and over time."""

    bucket_ms: int
    now: list[TierNow]
    series: list[TierBucket]


def tier_levels(cursor: duckdb.DuckDBPyConnection, chosen: Chosen, points: int) -> TierLevels:
    """Levels of the tiers of some streams, in at most so many buckets. Three passes over the samples."""
    values = {"streams": chosen.streams, "start_ns": chosen.start_ns, "end_ns": chosen.end_ns}
    extent = cursor.execute(_EXTENT, values).fetchone()
    width_ns = bucket_ns(extent, points)
    newest = cursor.execute(_NEWEST, values).fetchall()
    rows = cursor.execute(_SERIES, {**values, "bucket_ns": width_ns}).fetchall()
    now = [TierNow(tier_name(row[0]), row[-1], TierLevel(*row[1:-1])) for row in newest]
    return TierLevels(
        width_ns // 1_000_000, now, [TierBucket(tier_name(row[0]), row[1], row[2], TierLevel(*row[3:])) for row in rows]
    )
