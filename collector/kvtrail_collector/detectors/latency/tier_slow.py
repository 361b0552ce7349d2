"""`TIER_SLOW`, seen in single loads: a part of them takes longer than computing the same tokens would have."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH load AS (
    SELECT *, coalesce(alloc_ns, 0) + coalesce(submit_ns, 0) + coalesce(io_ns, 0) + coalesce(copy_ns, 0) + coalesce(sync_ns, 0)
        AS service_ns
    FROM window_ops WHERE is_load AND prefetch IS NULL AND closed_ns IS NOT NULL AND recompute_estimate_ns > 0
)
SELECT tier, count(*) AS loads, count(*) FILTER (service_ns > recompute_estimate_ns) AS slow_loads,
    count(*) FILTER (service_ns > recompute_estimate_ns) / count(*) AS share,
    median(service_ns) / 1e6 AS restore_p50_ms, quantile_cont(service_ns, 0.95) / 1e6 AS restore_p95_ms,
    median(recompute_estimate_ns) / 1e6 AS recompute_p50_ms,
    sum(service_ns - recompute_estimate_ns) FILTER (service_ns > recompute_estimate_ns) AS touched_ns,
    refs_of(stream_id, seq) FILTER (service_ns > recompute_estimate_ns) AS refs
FROM load GROUP BY stream_id, tier
HAVING count(*) FILTER (service_ns > $times * recompute_estimate_ns) >= greatest($slow_loads, $share * count(*))
    AND median(service_ns) < median(recompute_estimate_ns)
"""

RULE: Final = Rule(
    code="TIER_SLOW",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="Loads from this tier are usually worth it, but a part of them takes far longer than computing again would have.",
    check="SELECT op, io_ns / 1e6 FROM events WHERE kind = kind_no('swap_in_loaded') ORDER BY io_ns DESC NULLS LAST LIMIT 10",
    action="recompute instead of reading from this tier",
    unlike="`TIER_QUEUE`: the wait is before the load. `OFFLOAD_NOT_PAYING`: the usual load is no better either.",
    question=_QUESTION,
    needs=(
        Need((Kind.SWAP_IN_LOADED,), ("io_ns", "copy_ns")),
        Need((Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_STARTED), ("recompute_estimate_ns",)),
    ),
    thresholds=(
        Threshold("times", 2, "ratio", "how many times the estimate for computing again a slow load takes"),
        Threshold("slow_loads", 10, "loads", "how many of them there must be"),
        Threshold("share", 0.1, "share", "and which share of all"),
    ),
)
