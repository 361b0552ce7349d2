"""`PREFETCH_ALLOC_FAIL`: prefetches fail for want of room, and room is made just after."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH failed AS (
    SELECT stream_id, seq, t_ns, dst AS tier FROM window_events
    WHERE kind = kind_no('swap_in_failed') AND prefetch IS NOT NULL AND reason = reason_no('alloc')
    UNION ALL
    SELECT wrong.stream_id, wrong.seq, wrong.t_ns, coalesce(wrong.tier, issued.dst) AS tier
    FROM (SELECT * FROM window_events WHERE kind = kind_no('error') AND reason = reason_no('alloc')) AS wrong
    ASOF JOIN (SELECT * FROM window_events WHERE kind = kind_no('prefetch_issued')) AS issued
        ON issued.stream_id = wrong.stream_id AND wrong.t_ns >= issued.t_ns
    WHERE wrong.t_ns - issued.t_ns <= $after_ms * 1e6
), room AS (SELECT stream_id, tier, t_ns FROM window_events WHERE kind = kind_no('evicted')
), judged AS (
    SELECT failed.*, room.t_ns - failed.t_ns AS after_ns FROM failed ASOF LEFT JOIN room
    ON room.stream_id = failed.stream_id AND room.tier = failed.tier AND room.t_ns >= failed.t_ns
), issues AS (SELECT stream_id, count(*) AS blocks FROM window_events WHERE kind = kind_no('prefetch_issued') GROUP BY stream_id
)
SELECT tier, count(*) AS failed, any_value(issues.blocks) AS issued,
    count(*) FILTER (after_ns <= $after_ms * 1e6) AS room_made_after,
    median(after_ns) / 1e6 AS room_made_after_ms, count(*) / greatest(any_value(issues.blocks), count(*)) AS share,
    0 AS touched_ns, refs_of(judged.stream_id, judged.seq) AS refs
FROM judged LEFT JOIN issues USING (stream_id) GROUP BY judged.stream_id, tier
HAVING count(*) FILTER (after_ns <= $after_ms * 1e6) >= greatest($failures, 0.5 * count(*))
"""

RULE: Final = Rule(
    code="PREFETCH_ALLOC_FAIL",
    family=Family.PREFETCH,
    basis=Basis.MECHANISM,
    means="Eviction runs after prefetching instead of before it: each prefetch finds the pool full, then room is made.",
    check="SELECT t_ns, kind, reason FROM events WHERE kind IN (kind_no('prefetch_issued'), kind_no('swap_in_failed'), "
    "kind_no('error'), kind_no('evicted')) ORDER BY t_ns",
    action="evict before prefetching",
    unlike="A pool in which nothing may be evicted: no room is made after.",
    question=_QUESTION,
    needs=(Need((Kind.PREFETCH_ISSUED,)),),
    triggers=(Kind.SWAP_IN_FAILED, Kind.ERROR),
    thresholds=(
        Threshold("failures", 5, "prefetches", "how many must have failed so"),
        Threshold("after_ms", 50, "ms", "how soon after the failure room was made"),
    ),
)
