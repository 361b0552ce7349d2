"""`DISK_FILL`: a disk tier grows steadily and evicts nothing; says when it will be full."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH sample AS (
    SELECT stream_id, seq, tier, t_ns, used_bytes, free_bytes, capacity_bytes FROM window_events
    WHERE kind = kind_no('capacity_sampled') AND tier = tier_no('nvme') AND used_bytes IS NOT NULL AND ns IS NULL
), trend AS (
    SELECT stream_id, tier, count(*) AS samples, max(t_ns) - min(t_ns) AS span_ns, regr_slope(used_bytes, t_ns) AS bytes_per_ns,
        regr_r2(used_bytes, t_ns) AS fit, arg_max(used_bytes, t_ns) AS used, max(capacity_bytes) AS capacity,
        arg_max(least(coalesce(free_bytes, capacity_bytes - used_bytes),
            greatest(coalesce(capacity_bytes, free_bytes + used_bytes) - used_bytes, 0)), t_ns) AS room,
        refs_of(stream_id, seq) AS refs
    FROM sample GROUP BY ALL
), evicted AS (SELECT DISTINCT stream_id, tier FROM window_events WHERE kind IN (kind_no('evicted'), kind_no('tier_cleared'))
)
SELECT tier, used / 1e9 AS used_gb, room / 1e9 AS room_gb, bytes_per_ns * 3600 AS growth_gb_per_h,
    room / bytes_per_ns / 3.6e12 AS full_in_hours, fit, samples, 0 AS touched_ns, refs
FROM trend ANTI JOIN evicted ON evicted.stream_id = trend.stream_id AND evicted.tier = trend.tier
WHERE samples >= 10 AND span_ns >= $span_s * 1e9 AND fit >= 0.9 AND bytes_per_ns > 0 AND room / bytes_per_ns / 3.6e12 <= $hours
"""

RULE: Final = Rule(
    code="DISK_FILL",
    family=Family.POOLS,
    basis=Basis.MECHANISM,
    means="What is written to this disk stays: it will be full in the hours that are named, and then writes fail.",
    check="SELECT t_ns, used_bytes, free_bytes FROM events WHERE kind = kind_no('capacity_sampled') AND tier = tier_no('nvme') "
    "ORDER BY t_ns",
    action="stop offloading to it, or let it evict",
    unlike="A tier that is full and evicts as fast as it is written: a steady state.",
    question=_QUESTION,
    needs=(Need((Kind.CAPACITY_SAMPLED,), ("used_bytes",)),),
    thresholds=(
        Threshold("span_s", 600, "s", "over how long it must have been seen to grow"),
        Threshold("hours", 72, "h", "how soon it will be full"),
    ),
)
