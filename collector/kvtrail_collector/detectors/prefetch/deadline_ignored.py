"""`DEADLINE_IGNORED`: prefetches are held past their deadline, and nothing says that it was missed."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH held AS (
    SELECT own.*, coalesce(least(used_ns, wasted_ns, cancelled_ns), last_ns) - deadline_ns AS over_ns,
        CASE WHEN completed_ns IS NULL THEN 'io' WHEN ready_ns IS NULL THEN 'ready' ELSE 'outcome' END AS pending
    FROM window_prefetches AS own JOIN window_streams USING (stream_id)
    WHERE deadline_ns IS NOT NULL AND missed_ns IS NULL AND (completed_ns IS NULL OR completed_ns > deadline_ns)
)
SELECT src AS tier, count(*) AS cases, count(*) AS blocks, count(DISTINCT prefetch) AS prefetches,
    max(over_ns) / 1e6 AS longest_over_ms, mode(pending) AS pending_part, sum(over_ns) AS touched_ns,
    refs_of(stream_id, seq) AS refs
FROM held WHERE over_ns >= $over_ms * 1e6 GROUP BY stream_id, src
"""

RULE: Final = Rule(
    code="DEADLINE_IGNORED",
    family=Family.PREFETCH,
    basis=Basis.MECHANISM,
    means="A deadline passed while a part of the prefetch was pending, and the prefetch was held on to without a word.",
    check="SELECT prefetch, kind, t_ns, deadline_ns FROM events WHERE prefetch IS NOT NULL ORDER BY prefetch, t_ns",
    action="enforce the deadline for every part of a prefetch",
    unlike="A deadline that was missed and said so (`prefetch_deadline_missed`).",
    question=_QUESTION,
    needs=(Need((Kind.PREFETCH_ISSUED,), ("deadline_ns",)),),
    thresholds=(Threshold("over_ms", 1000, "ms", "for how long a prefetch must be held past its deadline"),),
    evidence=Evidence.ABSENCE,
)
