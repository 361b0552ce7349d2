"""`DEADLINE_TOO_LONG`: prefetches may take longer than a request may."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
SELECT src AS tier, count(*) AS blocks, max(deadline_ns - issued_ns) / 1e9 AS longest_deadline_s, $slo_s AS slo_s,
    count(*) / any_value(total) AS share, coalesce(sum(ready_ns - issued_ns), 0)::BIGINT AS touched_ns,
    refs_of(stream_id, seq) AS refs
FROM (SELECT *, count(*) OVER (PARTITION BY stream_id, src) AS total FROM window_prefetches WHERE deadline_ns IS NOT NULL)
WHERE deadline_ns - issued_ns > $slo_s * 1e9 GROUP BY stream_id, src
"""

RULE: Final = Rule(
    code="DEADLINE_TOO_LONG",
    family=Family.PREFETCH,
    basis=Basis.MECHANISM,
    means="The deadline of prefetches is beyond the service level objective: a request can wait for one until it has failed.",
    check="SELECT max(deadline_ns - t_ns) / 1e9 FROM events WHERE kind = kind_no('prefetch_issued')",
    action="cap the deadline well below the objective",
    unlike="A long deadline on prefetches that nobody waits for, under a long objective: then set `slo_s`.",
    question=_QUESTION,
    needs=(Need((Kind.PREFETCH_ISSUED,), ("deadline_ns",)),),
    thresholds=(Threshold("slo_s", 30, "s", "the objective for time to first token that deadlines must stay within"),),
)
