"""`PREFETCH_LATE`: prefetched blocks were used, but became readable only after the request needed them."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH stood AS (
    SELECT stream_id, op, sum(wait_ns) AS wait_ns FROM window_events
    WHERE kind = kind_no('copy_waited') AND op IS NOT NULL GROUP BY stream_id, op
), waited AS (
    SELECT op.stream_id, op.prefetch, sum(wait_ns) AS wait_ns FROM stood JOIN window_ops AS op USING (stream_id, op)
    WHERE op.prefetch IS NOT NULL GROUP BY op.stream_id, op.prefetch
), judged AS (
    SELECT used.*, coalesce(waited.wait_ns, 0) AS wait_ns,
        greatest(completed_ns - least(used.deadline_ns, request.first_token_ns, request.admitted_ns), 0) AS late_ns,
        coalesce(ready_ns - completed_ns, 0) > coalesce(completed_ns - issued_ns, 0) AS is_unseen
    FROM window_prefetches AS used LEFT JOIN waited USING (stream_id, prefetch)
    LEFT JOIN window_requests AS request ON request.stream_id = used.stream_id AND request.req = coalesce(user_req, issuer)
    WHERE used_ns IS NOT NULL AND completed_ns IS NOT NULL
)
SELECT src AS tier, count(*) AS used_blocks, count(*) FILTER (late_ns > 0 OR wait_ns > 0) AS late_blocks,
    count(*) FILTER (late_ns > 0 OR wait_ns > 0) / count(*) AS share, count(missed_ns) AS deadlines_missed,
    median(late_ns) FILTER (late_ns > 0) / 1e6 AS median_late_ms,
    greatest(sum(late_ns) FILTER (late_ns > 0), sum(wait_ns))::BIGINT AS touched_ns,
    refs_of(stream_id, seq) FILTER (late_ns > 0 OR wait_ns > 0) AS refs
FROM judged WHERE NOT is_unseen GROUP BY stream_id, src
HAVING count(*) FILTER (late_ns > $late_ms * 1e6 OR wait_ns > $late_ms * 1e6) >= greatest($blocks, $share * count(*))
"""

RULE: Final = Rule(
    code="PREFETCH_LATE",
    family=Family.PREFETCH,
    basis=Basis.MECHANISM,
    means="The right blocks were fetched, too late: their requests were admitted, or their deadline had passed, "
    "before the I/O ended.",
    check="SELECT prefetch, kind, t_ns FROM events WHERE prefetch IS NOT NULL ORDER BY prefetch, t_ns",
    action="begin earlier, or not at all",
    unlike="`PREFETCH_READY_DELAY`: the I/O was done in time, nobody looked.",
    question=_QUESTION,
    needs=(Need((Kind.PREFETCH_COMPLETED,)),),
    triggers=(Kind.PREFETCH_USED,),
    thresholds=(
        Threshold("late_ms", 20, "ms", "from which a block counts as late"),
        Threshold("blocks", 10, "blocks", "how many blocks must have been late"),
        Threshold("share", 0.3, "share", "and which share of those that were used"),
    ),
)
