"""`POOL_FRAGMENTED`: an allocation fails though enough bytes are free: no hole is large enough."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH failed AS (
    SELECT stream_id, seq, t_ns, dst AS tier, bytes AS need FROM window_events
    WHERE kind IN (kind_no('swap_in_failed'), kind_no('swap_out_failed')) AND reason = reason_no('alloc') AND bytes > 0
), sample AS (
    SELECT stream_id, tier, t_ns, free_bytes, largest_hole_bytes, capacity_bytes FROM window_events
    WHERE kind = kind_no('capacity_sampled') AND largest_hole_bytes IS NOT NULL AND ns IS NULL
)
SELECT failed.tier, count(*) AS failures, max(need) AS need_bytes, max(free_bytes) AS free_bytes,
    max(largest_hole_bytes) AS largest_hole_bytes, max(free_bytes / capacity_bytes) AS free_share, 0 AS touched_ns,
    refs_of(failed.stream_id, failed.seq) AS refs
FROM failed ASOF JOIN sample ON sample.stream_id = failed.stream_id AND sample.tier = failed.tier AND failed.t_ns >= sample.t_ns
WHERE free_bytes >= need AND largest_hole_bytes < need GROUP BY failed.stream_id, failed.tier HAVING count(*) >= $failures
"""

RULE: Final = Rule(
    code="POOL_FRAGMENTED",
    family=Family.POOLS,
    basis=Basis.MECHANISM,
    means="Free memory is there in pieces that are too small for what is asked.",
    check="SELECT t_ns, free_bytes, largest_hole_bytes FROM events WHERE kind = kind_no('capacity_sampled') ORDER BY t_ns",
    action="compact the pool, or allocate in blocks of one size",
    unlike="A full pool: free bytes are fewer than asked for.",
    question=_QUESTION,
    needs=(Need((Kind.CAPACITY_SAMPLED,), ("largest_hole_bytes",)),),
    triggers=(Kind.SWAP_IN_FAILED, Kind.SWAP_OUT_FAILED),
    thresholds=(Threshold("failures", 1, "allocations", "how many must have failed so"),),
)
