"""`ENGINE_STALL`: the recorder's heartbeat goes on, everything else has stopped, and work is queued."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH beat AS (
    SELECT stream_id, max(t_ns) AS t_ns, count(*) AS beats FROM window_events WHERE kind = kind_no('agent_heartbeat')
        AND reason = reason_no('recorder') GROUP BY stream_id
), act AS (
    SELECT stream_id, max(t_ns) AS t_ns, max(t_ns) FILTER (kind IN (kind_no('step_started'),
        kind_no('step_finished'))) AS step_ns,
        arg_max(seq, t_ns) AS seq
    FROM window_events WHERE kind NOT IN (kind_no('agent_heartbeat'), kind_no('capacity_sampled'), kind_no('gpu_sampled'),
        kind_no('counter_sampled'), kind_no('agent_stopped'), kind_no('events_dropped'), kind_no('clock_stepped'))
            GROUP BY stream_id
), queued AS (
    SELECT stream_id, count(*) AS requests FROM window_requests WHERE arrived_ns IS NOT NULL AND ended_ns IS NULL
        AND (first_token_ns IS NULL OR stream_id IN (SELECT stream_id FROM window_requests WHERE ended_ns IS NOT NULL))
        GROUP BY stream_id
), flying AS (SELECT stream_id, count(*) AS transfers FROM window_open GROUP BY stream_id
), later AS (
    SELECT act.stream_id, count(*) AS beats FROM act JOIN window_events AS event ON event.stream_id = act.stream_id
        AND event.kind = kind_no('agent_heartbeat') AND event.t_ns > act.t_ns GROUP BY act.stream_id
)
SELECT (beat.t_ns - act.t_ns) / 1e9 AS silent_for_s, (beat.t_ns - act.step_ns) / 1e9 AS last_step_before_s,
    coalesce(queued.requests, 0) AS requests_unfinished, coalesce(flying.transfers, 0) AS transfers_in_flight,
    later.beats AS heartbeats_meanwhile, beat.t_ns - act.t_ns AS touched_ns, 1000 AS cases,
    [{'stream': act.stream_id, 'seq': act.seq}] AS refs
FROM beat JOIN act USING (stream_id) JOIN later USING (stream_id)
LEFT JOIN queued USING (stream_id) LEFT JOIN flying USING (stream_id)
WHERE beat.t_ns - act.t_ns >= $silence_s * 1e9 AND coalesce(queued.requests, 0) + coalesce(flying.transfers, 0) > 0
    AND later.beats >= 3
"""
"""Where no request ever ends, the source does not tell of ends: then those run that have no first token."""

RULE: Final = Rule(
    code="ENGINE_STALL",
    family=Family.HANGS,
    basis=Basis.MECHANISM,
    means="The process lives, its scheduler does not: no step, no transfer, no answer, though requests are there.",
    check="SELECT kind, max(t_ns) FROM events GROUP BY kind ORDER BY 2 DESC",
    action="restart the engine; keep its stack first",
    unlike="An idle engine: nothing is queued. `AGENT_DEAD`: the heartbeat has stopped too.",
    question=_QUESTION,
    needs=(Need((Kind.AGENT_HEARTBEAT,)),),
    thresholds=(Threshold("silence_s", 30, "s", "for how long nothing but the heartbeat was heard"),),
    evidence=Evidence.ABSENCE,
)
