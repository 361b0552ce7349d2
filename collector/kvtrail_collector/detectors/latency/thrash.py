"""`THRASH`: the same blocks are evicted and brought back again and again within seconds."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH block AS (
    SELECT stream_id, tier, block, count(*) AS times, min(seq) AS seq, sum(back_ns - evicted_ns) AS away_ns,
        (max(evicted_ns) - min(evicted_ns)) / greatest(count(*) - 1, 1) AS cycle_ns,
        count(*) FILTER (back_kind = kind_no('block_created')) AS recomputed
    FROM window_returns WHERE back_ns - evicted_ns <= $within_s * 1e9 GROUP BY stream_id, tier, block
), evicted AS (
    SELECT stream_id, tier, approx_count_distinct(block) AS blocks FROM window_events WHERE kind = kind_no('evicted')
    GROUP BY stream_id, tier
)
SELECT block.tier, count(*) AS blocks, avg(times) AS times_each, median(away_ns / times) / 1e6 AS median_away_ms,
    sum(recomputed) AS recomputed, count(*) / any_value(evicted.blocks) AS share, sum(away_ns) AS touched_ns,
    refs_of(block.stream_id, block.seq) AS refs
FROM block JOIN evicted USING (stream_id, tier) WHERE times >= $times AND cycle_ns <= $within_s * 1e9
GROUP BY block.stream_id, block.tier
HAVING count(*) >= $blocks AND count(*) >= $share * any_value(evicted.blocks)
"""

RULE: Final = Rule(
    code="THRASH",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="More is in use at once than fits: blocks are evicted and brought back, restored or computed again, in circles.",
    check="SELECT block, count(*) FROM events WHERE kind = kind_no('evicted') GROUP BY block ORDER BY 2 DESC LIMIT 10",
    action="lower admission, or the limit for long contexts",
    unlike="Evictions that happen once: a working set that moves on.",
    question=_QUESTION,
    needs=(Need((Kind.BLOCK_CREATED, Kind.SWAP_IN_LOADED)),),
    triggers=(Kind.EVICTED,),
    thresholds=(
        Threshold("within_s", 5, "s", "how soon a block must be back, and go again"),
        Threshold("times", 3, "evictions", "how often the same block must have gone and come back"),
        Threshold("blocks", 10, "blocks", "how many such blocks there must be"),
        Threshold("share", 0.5, "share", "and which share of all evicted blocks"),
    ),
)
