"""`FALLBACK_STALLED`: recomputing was chosen, and no step follows."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Rule, Threshold

_QUESTION: Final = """
WITH chosen AS (
    SELECT stream_id, req, min(t_ns) AS t_ns, min(seq) AS seq FROM window_events
    WHERE kind = kind_no('recompute_chosen') OR (kind = kind_no('degrade_applied') AND req IS NOT NULL) GROUP BY stream_id, req
), step AS (SELECT stream_id, t_ns FROM window_events WHERE kind = kind_no('step_started')
), waited AS (
    SELECT chosen.*, coalesce(step.t_ns, last_ns) - chosen.t_ns AS idle_ns, request.label, request.ns
    FROM chosen JOIN window_streams USING (stream_id) JOIN window_requests AS request USING (stream_id, req)
    ASOF LEFT JOIN step ON step.stream_id = chosen.stream_id AND step.t_ns >= chosen.t_ns
    WHERE coalesce(request.first_token_ns, request.ended_ns, last_ns) - chosen.t_ns >= $idle_s * 1e9
)
SELECT any_value(ns) AS ns, count(*) AS requests, 1000 AS cases, max(idle_ns) / 1e9 AS no_step_for_s,
    coalesce(arg_max(label, idle_ns), hex16(arg_max(req, idle_ns))) AS request, sum(idle_ns)::BIGINT AS touched_ns,
    refs_of(stream_id, seq) AS refs
FROM waited WHERE idle_ns >= $idle_s * 1e9 GROUP BY stream_id
"""

RULE: Final = Rule(
    code="FALLBACK_STALLED",
    family=Family.INTEGRITY,
    basis=Basis.MECHANISM,
    means="The way back to computing does not work: a request was put on it, and the scheduler sleeps until "
    "something else comes.",
    check="SELECT kind, t_ns FROM events WHERE kind IN (kind_no('recompute_chosen'), kind_no('step_started')) ORDER BY t_ns",
    action="treat it as an incident: do not rely on this fallback; wake the scheduler when it is chosen",
    unlike="`ENGINE_STALL`: the engine stopped for another reason.",
    question=_QUESTION,
    triggers=(Kind.RECOMPUTE_CHOSEN,),
    thresholds=(Threshold("idle_s", 30, "s", "for how long no step followed"),),
    evidence=Evidence.ABSENCE,
)
