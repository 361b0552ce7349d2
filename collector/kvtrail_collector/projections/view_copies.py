"""Residency: one row per stay of a copy in its place, with what ended it.

A copy lies at (tier, slot) from the event that made it readable there to its eviction or invalidation. Where the next thing
that is known of the place is another copy, the end was lost or never told: it is called superseded, never an eviction. A
`tier_cleared` ends what it names, wherever its own end is not told earlier.
"""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.projections.projection import numbers

_MADE: Final = numbers(Kind.BLOCK_CREATED, Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN)
_MOVED: Final = numbers(Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN)
_ENDED: Final = numbers(Kind.EVICTED, Kind.INVALIDATED)
_CLEARED: Final = Kind.TIER_CLEARED.value
_MOMENT: Final = "(t_ns::HUGEINT + 9223372036854775808)::UHUGEINT * 18446744073709551616::UHUGEINT + seq::UHUGEINT"
"""Time, and at one time the order in which it was told: an engine clears a tier and fills it again at one stamp."""

RESIDENCY: Final = f"""
WITH marks AS (
    SELECT stream_id, seq, t_ns, {_MOMENT} AS moment, kind, block, ns,
        CASE WHEN kind IN ({_MOVED}) THEN dst ELSE tier END AS tier, slot, reason
    FROM events WHERE kind IN ({_MADE}, {_ENDED}) AND block IS NOT NULL
), stays AS (
    SELECT *, lead(kind) OVER place AS next_kind, lead(t_ns) OVER place AS next_ns, lead(block) OVER place AS next_block,
        lead(reason) OVER place AS next_reason
    FROM marks
    WINDOW place AS (PARTITION BY stream_id, tier, slot, CASE WHEN slot IS NULL THEN block END ORDER BY t_ns, seq)
), clears AS (SELECT stream_id, t_ns, {_MOMENT} AS moment, tier, ns, reason FROM events WHERE kind = {_CLEARED}
), cleared AS (
    SELECT stays.*, any_clear.t_ns AS any_ns, any_clear.reason AS any_reason, own_clear.t_ns AS own_ns,
        own_clear.reason AS own_reason
    FROM stays
    ASOF LEFT JOIN (FROM clears WHERE ns IS NULL) AS any_clear
        ON stays.stream_id = any_clear.stream_id AND stays.tier = any_clear.tier AND stays.moment < any_clear.moment
    ASOF LEFT JOIN (FROM clears WHERE ns IS NOT NULL) AS own_clear
        ON stays.stream_id = own_clear.stream_id AND stays.tier = own_clear.tier AND stays.ns = own_clear.ns
        AND stays.moment < own_clear.moment
    WHERE kind IN ({_MADE})
), ends AS (
    SELECT *, least(any_ns, own_ns) AS clear_ns,
        CASE WHEN own_ns IS NULL OR any_ns <= own_ns THEN any_reason ELSE own_reason END AS clear_reason FROM cleared
)
SELECT stream_id, block, ns, tier, slot, t_ns AS from_ns, least(next_ns, clear_ns) AS to_ns,
    CASE WHEN next_ns IS NULL AND clear_ns IS NULL THEN 'open'
        WHEN clear_ns IS NOT NULL AND (next_ns IS NULL OR clear_ns <= next_ns) THEN 'cleared'
        WHEN next_kind = {Kind.EVICTED.value} AND next_block = block THEN 'evicted'
        WHEN next_kind = {Kind.INVALIDATED.value} AND next_block = block THEN 'invalidated'
        ELSE 'superseded' END AS ended_by,
    CASE WHEN clear_ns IS NOT NULL AND (next_ns IS NULL OR clear_ns <= next_ns) THEN clear_reason
        WHEN next_kind IN ({_ENDED}) AND next_block = block THEN next_reason END AS reason
FROM ends
"""  # noqa: S608  # constants of ours
