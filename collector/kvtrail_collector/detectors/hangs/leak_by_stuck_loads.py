"""`LEAK_BY_STUCK_LOADS`: loads that never end hold their places, and the pool runs out of them."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH held AS (
    SELECT open.stream_id, open.dst AS tier, count(*) AS blocks, count(DISTINCT req) AS requests, min(queued_ns) AS since_ns,
        sum(stream.last_ns - queued_ns) AS held_ns, refs_of(open.stream_id, open.seq) AS refs
    FROM window_open AS open JOIN window_streams AS stream USING (stream_id)
    WHERE is_load AND stream.last_ns - queued_ns >= $stuck_s * 1e9 GROUP BY open.stream_id, open.dst
), room AS (
    SELECT stream_id, tier, arg_min(free_bytes + coalesce(evictable_bytes, 0), t_ns) AS before,
        arg_max(free_bytes + coalesce(evictable_bytes, 0), t_ns) AS after, max(capacity_bytes) AS capacity
    FROM window_events WHERE kind = kind_no('capacity_sampled') AND free_bytes IS NOT NULL AND ns IS NULL GROUP BY ALL
)
SELECT tier, blocks, blocks AS cases, requests, before AS free_bytes_before, after AS free_bytes_after,
    held_ns::BIGINT AS touched_ns,
    (before - after) / greatest(capacity, before, 1) AS share, refs
FROM held JOIN room USING (stream_id, tier)
WHERE blocks >= $blocks AND before > after AND before - after >= $fall * greatest(coalesce(capacity, before), 1)
"""

RULE: Final = Rule(
    code="LEAK_BY_STUCK_LOADS",
    family=Family.HANGS,
    basis=Basis.MECHANISM,
    means="Places that stuck loads wait to fill are lost to everybody else: free room falls until admission stops.",
    check="SELECT t_ns, free_bytes FROM events WHERE kind = kind_no('capacity_sampled') AND tier = "
    "tier_no('gpu') ORDER BY t_ns",
    action="time stuck loads out, so that their places come back",
    unlike="Long requests that hold blocks and go on running.",
    question=_QUESTION,
    needs=(Need((Kind.SWAP_IN_QUEUED,)), Need((Kind.CAPACITY_SAMPLED,), ("free_bytes",))),
    thresholds=(
        Threshold("stuck_s", 30, "s", "from which age a load counts as stuck"),
        Threshold("blocks", 10, "blocks", "how many places they hold"),
        Threshold("fall", 0.1, "share", "of the capacity by which free room fell"),
    ),
    evidence=Evidence.ABSENCE,
)
