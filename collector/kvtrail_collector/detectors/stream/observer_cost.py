"""`OBSERVER_COST`: recording takes more of the engine's time than its budget."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Rule, Threshold

_QUESTION: Final = """
WITH counter AS (
    SELECT stream_id, max("value") - min("value") AS cost_ns, max(t_ns) - min(t_ns) AS span_ns, refs_of(stream_id, seq) AS refs
    FROM window_events WHERE kind = kind_no('counter_sampled') AND "text" = 'kvtrail_recorder_ns_total' GROUP BY stream_id
)
SELECT cost_ns / span_ns AS share, cost_ns / 1e6 AS recorder_ms, span_ns / 1e9 AS over_s, cost_ns::BIGINT AS touched_ns, refs
FROM counter WHERE span_ns > 0 AND cost_ns > $share * span_ns
"""

RULE: Final = Rule(
    code="OBSERVER_COST",
    family=Family.STREAM,
    basis=Basis.MECHANISM,
    means="The one who watches slows the one who works.",
    check='SELECT t_ns, "value" FROM events WHERE kind = kind_no(\'counter_sampled\') AND "text" = '
    "'kvtrail_recorder_ns_total'",
    action="sample, or leave the most frequent kinds out",
    unlike="An engine that is slow with the recorder off as well: toggle it to see.",
    question=_QUESTION,
    triggers=(Kind.COUNTER_SAMPLED,),
    thresholds=(Threshold("share", 0.01, "share", "of the engine's time that recording may take"),),
)
