"""`PINNED_POOL_DEADLOCK`: a pool is full, nothing in it may be evicted, and a load waits for room for ever."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH sample AS (
    SELECT stream_id, tier, t_ns, used_bytes, capacity_bytes, used_bytes >= 0.99 * capacity_bytes
        AND evictable_bytes = 0 AS is_full
    FROM window_events WHERE kind = kind_no('capacity_sampled') AND ns IS NULL AND capacity_bytes > 0
        AND evictable_bytes IS NOT NULL
), spell AS (
    SELECT stream_id, tier, max(t_ns) AS end_ns, arg_max(used_bytes, t_ns) AS used, max(capacity_bytes) AS capacity,
        coalesce(max(t_ns) FILTER (NOT is_full), min(t_ns)) AS since_ns, bool_or(is_full) AND arg_max(is_full, t_ns) AS is_full
    FROM sample GROUP BY stream_id, tier
), waiter AS (
    SELECT stream_id, min(queued_ns) AS queued_ns, count(*) AS blocks, count(DISTINCT coalesce(req, op)) AS waiters,
        max(src) AS src,
        refs_of(stream_id, seq) AS refs
    FROM window_open WHERE is_load GROUP BY stream_id
), moved AS (
    SELECT stream_id, coalesce(dst, tier) AS tier, max(t_ns) AS t_ns FROM window_events
    WHERE kind IN (kind_no('swap_in_loaded'), kind_no('evicted')) GROUP BY ALL
)
SELECT spell.tier, used / 1e9 AS used_gb, capacity / 1e9 AS capacity_gb, 0 AS evictable_bytes, waiters, blocks AS cases,
    (end_ns - greatest(since_ns, queued_ns)) / 1e9 AS no_progress_for_s, end_ns - greatest(since_ns,
        queued_ns) AS touched_ns, refs
FROM spell JOIN waiter USING (stream_id) LEFT JOIN moved USING (stream_id, tier)
WHERE is_full AND end_ns - greatest(since_ns, queued_ns, coalesce(moved.t_ns, since_ns)) >= $wait_s * 1e9
"""

RULE: Final = Rule(
    code="PINNED_POOL_DEADLOCK",
    family=Family.POOLS,
    basis=Basis.MECHANISM,
    means="Everything in the pool is held, a load waits for room in it, and nobody will make any: the wait never ends.",
    check="SELECT t_ns, used_bytes, evictable_bytes FROM events WHERE kind = kind_no('capacity_sampled') ORDER BY t_ns",
    action="serve from the GPU only; release what holds the pool",
    unlike="A pool that is full for a moment, while transfers come and go.",
    question=_QUESTION,
    needs=(Need((Kind.CAPACITY_SAMPLED,), ("evictable_bytes",)), Need((Kind.SWAP_IN_QUEUED,))),
    thresholds=(Threshold("wait_s", 10, "s", "for how long nothing moved in the full pool"),),
    evidence=Evidence.ABSENCE,
)
