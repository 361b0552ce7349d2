"""Residency: one row per stay of a copy in its place, with what ended it.

A copy lies at (tier, slot) from the event that made it readable there to its eviction or invalidation. Where the next thing
that is known of the place is another copy, the end was lost or never told: it is called superseded, never an eviction. A
`tier_cleared` ends what it names, wherever its own end is not told earlier. A stay of which no slot is told ends with the next
thing that is known of its block in the tier, in whichever slot. A place on NVMe or in a remote store is that of an engine and
rank, across its processes; one in memory is that of a process.
"""

from typing import Final

from kvtrail_schema.enums import Tier
from kvtrail_schema.kinds import Kind

from kvtrail_collector.projections.projection import numbers

_MADE: Final = numbers(Kind.BLOCK_CREATED, Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN)
_MOVED: Final = numbers(Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN)
_ENDED: Final = numbers(Kind.EVICTED, Kind.INVALIDATED)
_CLEARED: Final = Kind.TIER_CLEARED.value
_MOMENT: Final = "(t_ns::HUGEINT + 9223372036854775808)::UHUGEINT * 18446744073709551616::UHUGEINT + seq::UHUGEINT"
"""Time, and at one time the order in which it was told: an engine clears a tier and fills it again at one stamp."""

_LASTING: Final = f"{Tier.NVME.value}, {Tier.REMOTE.value}"
_NEXT: Final = """
        lead(kind) OVER place AS next_kind, lead(t_ns) OVER place AS next_ns, lead(block) OVER place AS next_block,
        lead(reason) OVER place AS next_reason
"""
_HOLDER: Final = f"CASE WHEN tier IN ({_LASTING}) THEN home ELSE stream_id END"

RESIDENCY: Final = f"""
WITH homes AS (SELECT stream_id, min(stream_id) OVER (PARTITION BY engine, rank) AS home FROM streams
), told AS (
    SELECT stream_id, seq, t_ns, {_MOMENT} AS moment, kind, block, ns,
        CASE WHEN kind IN ({_MOVED}) THEN dst ELSE tier END AS tier, slot, reason
    FROM events WHERE kind IN ({_MADE}, {_ENDED}) AND block IS NOT NULL
), marks AS (SELECT told.*, {_HOLDER} AS holder FROM told JOIN homes USING (stream_id)
), anywhere AS (SELECT DISTINCT holder, tier, block FROM marks WHERE slot IS NULL
), stays AS (
    SELECT *, {_NEXT} FROM marks WHERE slot IS NOT NULL
    WINDOW place AS (PARTITION BY holder, tier, slot ORDER BY stream_id, t_ns, seq)
    UNION ALL
    FROM (
        SELECT *, {_NEXT} FROM marks SEMI JOIN anywhere USING (holder, tier, block)
        WINDOW place AS (PARTITION BY holder, tier, block ORDER BY stream_id, t_ns, seq)
    ) WHERE slot IS NULL
), clears AS (
    SELECT t_ns, {_MOMENT} AS moment, tier, ns, reason, {_HOLDER} AS holder
    FROM events JOIN homes USING (stream_id) WHERE kind = {_CLEARED}
), cleared AS (
    SELECT stays.*, any_clear.t_ns AS any_ns, any_clear.reason AS any_reason, own_clear.t_ns AS own_ns,
        own_clear.reason AS own_reason
    FROM stays
    ASOF LEFT JOIN (FROM clears WHERE ns IS NULL) AS any_clear
        ON stays.holder = any_clear.holder AND stays.tier = any_clear.tier AND stays.moment < any_clear.moment
    ASOF LEFT JOIN (FROM clears WHERE ns IS NOT NULL) AS own_clear
        ON stays.holder = own_clear.holder AND stays.tier = own_clear.tier AND stays.ns = own_clear.ns
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
