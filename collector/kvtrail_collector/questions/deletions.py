"""Deletions and their evidence: what was forbidden, when, and where its copies were taken away."""

from __future__ import annotations

from typing import Final

import duckdb
import msgspec
from kvtrail_schema.kinds import Kind

from kvtrail_collector.questions.scope import IN_STREAMS, Chosen
from kvtrail_collector.questions.words import reason_name, tier_name

MOST_DELETIONS: Final = 100
# The id is the engine's own counter, so cause and id meet within one engine and epoch, whatever the rank.
_DELETIONS: Final = f"""
WITH wanted AS (
    SELECT engine, epoch, rank, seq, id, reason, "text", t_ns, wall_ns - monotonic_ns AS offset_ns
    FROM events JOIN streams USING (stream_id) JOIN stream_marks USING (stream_id)
    WHERE kind = {Kind.INVALIDATION_REQUESTED.value} AND {IN_STREAMS} AND t_ns >= $start_ns AND t_ns < $end_ns
    ORDER BY t_ns + offset_ns DESC LIMIT {MOST_DELETIONS}
), gone AS (
    SELECT engine, epoch, cause AS id, tier, count(*) AS copies, max(t_ns) AS last_ns
    FROM events JOIN streams USING (stream_id) WHERE kind = {Kind.INVALIDATED.value} AND {IN_STREAMS} GROUP BY ALL
)
SELECT engine, epoch, wanted.rank, wanted.seq, reason, "text", t_ns, t_ns + offset_ns,
    list(struct_pack(tier, copies) ORDER BY tier) FILTER (copies IS NOT NULL), max(last_ns - t_ns)
FROM wanted LEFT JOIN gone USING (engine, epoch, id) GROUP BY ALL ORDER BY t_ns + offset_ns DESC
"""  # noqa: S608  # constants of ours


class CopiesGone(msgspec.Struct, frozen=True):
    """How many copies an invalidation took from a tier."""

    tier: str
    copies: int


class Deletion(msgspec.Struct, frozen=True):
    """One invalidation: the event that asked for it, its selector (hashed), what it took, and how long that lasted."""

    engine: str
    epoch: int
    rank: int
    seq: int
    reason: str | None
    selector: str | None
    at_ns: int
    wall_ns: int
    gone: list[CopiesGone]
    lasted_ns: int | None


def deletions(cursor: duckdb.DuckDBPyConnection, chosen: Chosen) -> list[Deletion]:
    """The newest invalidations, at most `MOST_DELETIONS`."""
    values = {"streams": chosen.of_all_time, "start_ns": chosen.start_ns, "end_ns": chosen.end_ns}
    return [_deletion(row) for row in cursor.execute(_DELETIONS, values).fetchall()]


def _deletion(
    row: tuple[str, int, int, int, int | None, str | None, int, int, list[dict[str, int]] | None, int | None],
) -> Deletion:
    """One row as an answer."""
    engine, epoch, rank, seq, reason, selector, at_ns, wall_ns, gone, lasted = row
    copies = [CopiesGone(tier_name(one["tier"]), one["copies"]) for one in gone or []]
    return Deletion(engine, epoch, rank, seq, reason_name(reason), selector, at_ns, wall_ns, copies, lasted)
