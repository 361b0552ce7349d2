"""`PREFETCH_WASTE`: much of what was fetched ahead was never used, and took bytes and service time from others."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH ended AS (
    SELECT *, wasted_ns IS NOT NULL AND used_ns IS NULL AS is_wasted FROM window_prefetches
    WHERE coalesce(used_ns, wasted_ns) IS NOT NULL
), served AS (
    SELECT stream_id, prefetch, sum(coalesce(io_ns, 0) + coalesce(copy_ns, 0)) AS service_ns FROM window_ops
    WHERE prefetch IS NOT NULL GROUP BY stream_id, prefetch
), cost AS (
    SELECT ended.stream_id, ended.src, sum(service_ns) AS service_ns FROM served
    JOIN (SELECT DISTINCT stream_id, prefetch, src FROM ended WHERE is_wasted) AS ended USING (stream_id, prefetch) GROUP BY ALL
)
SELECT ended.src AS tier, count(*) FILTER (is_wasted) AS wasted_blocks, count(*) AS ended_blocks,
    count(*) FILTER (is_wasted) / count(*) AS share, reason_name(mode(wasted_reason) FILTER (is_wasted)) AS most_common_reason,
    sum(ended.bytes) FILTER (is_wasted) AS wasted_bytes, coalesce(any_value(cost.service_ns), 0)::BIGINT AS touched_ns,
    CASE WHEN mode(wasted_reason) FILTER (is_wasted) = reason_no('too_late') THEN ['PREFETCH_LATE'] ELSE [] END AS also,
    refs_of(ended.stream_id, ended.seq) FILTER (is_wasted) AS refs
FROM ended LEFT JOIN cost ON cost.stream_id = ended.stream_id AND cost.src IS NOT DISTINCT FROM ended.src
GROUP BY ended.stream_id, ended.src
HAVING count(*) FILTER (is_wasted) >= $blocks AND count(*) FILTER (is_wasted) >= $share * count(*)
"""

RULE: Final = Rule(
    code="PREFETCH_WASTE",
    family=Family.PREFETCH,
    basis=Basis.MECHANISM,
    means="Blocks were fetched ahead and dropped unused; their reads took the tier's time from loads that were waited for.",
    check="SELECT reason, count(*) FROM events WHERE kind = kind_no('prefetch_wasted') GROUP BY reason",
    action="stop prefetching, or shrink its window",
    unlike="Prefetches that were used later, and ones that were cancelled before they cost anything.",
    question=_QUESTION,
    needs=(Need((Kind.PREFETCH_USED, Kind.PREFETCH_WASTED, Kind.PREFETCH_CANCELLED, Kind.PREFETCH_SKIPPED)),),
    triggers=(Kind.PREFETCH_WASTED,),
    thresholds=(
        Threshold("blocks", 20, "blocks", "how many blocks must have been wasted"),
        Threshold("share", 0.5, "share", "and which share of those that were used or wasted"),
    ),
)
