"""`EVICT_STARVED`: a full tier may evict nothing, since probes that never read renew the leases."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH lease AS (
    SELECT stream_id, count(*) AS leases, count(DISTINCT block) AS blocks, refs_of(stream_id, seq) AS refs FROM window_events
    WHERE kind = kind_no('lease_granted') GROUP BY stream_id
), read AS (
    SELECT stream_id, count(DISTINCT block) AS blocks FROM window_events
    WHERE kind IN (kind_no('swap_in_loaded'), kind_no('swap_in_queued')) GROUP BY stream_id
), pool AS (
    SELECT stream_id, tier, arg_max(used_bytes / capacity_bytes, t_ns) AS fill, arg_max(evictable_bytes, t_ns) AS evictable,
        max(t_ns) - min(t_ns) AS span_ns
    FROM window_events WHERE kind = kind_no('capacity_sampled') AND capacity_bytes > 0 AND evictable_bytes IS NOT NULL
        AND ns IS NULL GROUP BY ALL
), evicted AS (SELECT DISTINCT stream_id, tier FROM window_events WHERE kind = kind_no('evicted')
)
SELECT tier, leases, lease.blocks AS blocks_leased, lease.blocks AS cases, coalesce(read.blocks, 0) AS blocks_read, fill,
    1 - coalesce(read.blocks, 0) / lease.blocks AS share, span_ns AS touched_ns, refs
FROM lease JOIN pool USING (stream_id) LEFT JOIN read USING (stream_id)
ANTI JOIN evicted ON evicted.stream_id = lease.stream_id AND evicted.tier = pool.tier
WHERE leases >= $leases AND coalesce(read.blocks, 0) <= $read_share * lease.blocks AND fill >= 0.95 AND evictable = 0
"""

RULE: Final = Rule(
    code="EVICT_STARVED",
    family=Family.INTEGRITY,
    basis=Basis.MECHANISM,
    means="Looking whether a block is there keeps it there: the tier is full of blocks that nobody reads.",
    check="SELECT count(*), count(DISTINCT block) FROM events WHERE kind = kind_no('lease_granted')",
    action="probe without renewing the lease",
    unlike="Leases of blocks that are really read.",
    question=_QUESTION,
    needs=(Need((Kind.CAPACITY_SAMPLED,), ("evictable_bytes",)),),
    triggers=(Kind.LEASE_GRANTED,),
    thresholds=(
        Threshold("leases", 100, "leases", "how many must have been granted"),
        Threshold("read_share", 0.1, "share", "which share of the blocks was read, at most"),
    ),
    evidence=Evidence.ABSENCE,
)
