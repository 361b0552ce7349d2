"""`PREFETCH_POLLUTION`: room for prefetches was made by evicting blocks that were asked for again."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH victim AS (SELECT * FROM window_returns WHERE reason = reason_no('prefetch_room')
), wasted AS (
    SELECT DISTINCT issued.stream_id, issued.id FROM window_events AS issued
    JOIN window_prefetches AS own ON own.stream_id = issued.stream_id AND own.prefetch = issued.prefetch
        AND own.block = issued.block
    WHERE issued.kind = kind_no('prefetch_issued') AND issued.id IS NOT NULL AND own.wasted_ns IS NOT NULL
), judged AS (
    SELECT victim.*, back_ns - evicted_ns <= $within_s * 1e9 AS is_missed, wasted.id IS NOT NULL AS is_for_nothing
    FROM victim LEFT JOIN wasted ON wasted.stream_id = victim.stream_id AND wasted.id = victim.cause
)
SELECT tier, count(*) AS evicted_for_prefetch, count(*) FILTER (is_missed) AS asked_for_again,
    count(*) FILTER (is_for_nothing) AS for_wasted_prefetches, count(*) FILTER (is_missed
        OR is_for_nothing) / count(*) AS share,
    coalesce(sum(back_ns - evicted_ns) FILTER (is_missed), 0)::BIGINT AS touched_ns,
    refs_of(stream_id, seq) FILTER (is_missed OR is_for_nothing) AS refs
FROM judged GROUP BY stream_id, tier
HAVING count(*) FILTER (is_missed OR is_for_nothing) >= greatest($blocks, $share * count(*))
"""

RULE: Final = Rule(
    code="PREFETCH_POLLUTION",
    family=Family.PREFETCH,
    basis=Basis.MECHANISM,
    means="Prefetching pushes out blocks that are in use, or does so for prefetches that then bring nothing.",
    check="SELECT block, t_ns FROM events WHERE kind = kind_no('evicted') AND reason = reason_no('prefetch_room')",
    action="look up before making room; evict for a prefetch only what is colder than it",
    unlike="`THRASH`: blocks push each other out without prefetching.",
    question=_QUESTION,
    needs=(Need((Kind.EVICTED, Kind.PREFETCH_ISSUED)),),
    triggers=(Kind.EVICTED,),
    thresholds=(
        Threshold("within_s", 10, "s", "how soon a victim must be back"),
        Threshold("blocks", 10, "blocks", "how many such victims there must be"),
        Threshold("share", 0.3, "share", "and which share of all evictions for prefetches"),
    ),
)
