"""`PREFETCH_DISABLED`: blocks could be fetched ahead, and all are skipped for one and the same reason."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Rule, Threshold

_QUESTION: Final = """
WITH skipped AS (
    SELECT stream_id, count(*) AS eligible, mode(reason) AS reason, refs_of(stream_id, seq) AS refs,
        count(*) FILTER (reason <> reason_no('degraded')) AS unwanted, count(DISTINCT reason) AS reasons
    FROM window_events WHERE kind = kind_no('prefetch_skipped') GROUP BY stream_id
), issued AS (SELECT stream_id, count(*) AS blocks FROM window_events WHERE kind = kind_no('prefetch_issued') GROUP BY stream_id
)
SELECT eligible + coalesce(issued.blocks, 0) AS eligible, eligible AS skipped, coalesce(issued.blocks, 0) AS issued,
    reason_name(reason) AS for_reason, eligible / (eligible + coalesce(issued.blocks, 0)) AS share, 0 AS touched_ns, refs
FROM skipped LEFT JOIN issued USING (stream_id)
WHERE eligible >= $blocks AND unwanted = eligible AND reasons = 1 AND coalesce(issued.blocks, 0) <= 0.01 * eligible
"""

RULE: Final = Rule(
    code="PREFETCH_DISABLED",
    family=Family.PREFETCH,
    basis=Basis.MECHANISM,
    means="Prefetching is on and does nothing: some limit is always in the way, as one that was computed to be zero.",
    check="SELECT reason, count(*) FROM events WHERE kind = kind_no('prefetch_skipped') GROUP BY reason",
    action="find the limit behind the reason, and why it clamps to nothing",
    unlike="Nothing to fetch: no block was eligible, so none was skipped. A degrade action that switched it off.",
    question=_QUESTION,
    triggers=(Kind.PREFETCH_SKIPPED,),
    thresholds=(Threshold("blocks", 100, "blocks", "how many eligible blocks must have been skipped"),),
)
