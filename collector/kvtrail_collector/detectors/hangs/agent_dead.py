"""`AGENT_DEAD`: the heartbeat of a recorder stopped without a farewell, while others of its engine go on."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH life AS (
    SELECT stream_id, max(t_ns) FILTER (kind = kind_no('agent_heartbeat')) AS beat_ns, max(t_ns) AS last_ns,
        count(*) FILTER (kind = kind_no('agent_heartbeat')) AS beats, arg_max(seq, t_ns) AS seq,
        count(*) FILTER (kind = kind_no('agent_stopped')) AS farewells
    FROM window_events GROUP BY stream_id
), now AS (
    SELECT engine, max(last_ns) AS now_ns FROM life JOIN streams USING (stream_id) GROUP BY engine
)
SELECT engine, rank, (now_ns - last_ns) / 1e9 AS silent_for_s, beats AS heartbeats_before, now_ns - last_ns AS touched_ns,
    1000 AS cases, [{'stream': life.stream_id, 'seq': life.seq}] AS refs
FROM life JOIN streams USING (stream_id) JOIN now USING (engine)
WHERE beats > 0 AND farewells = 0 AND now_ns - greatest(beat_ns, last_ns) >= $silence_s * 1e9 AND NOT EXISTS (
    SELECT 1 FROM window_streams AS heir JOIN streams AS other USING (stream_id)
    WHERE other.engine = streams.engine AND other.rank = streams.rank AND heir.first_ns > life.last_ns)
"""

RULE: Final = Rule(
    code="AGENT_DEAD",
    family=Family.HANGS,
    basis=Basis.MECHANISM,
    means="Nothing is heard of a process, not even that it lives; it did not say that it ends. Process or recorder is gone.",
    check="SELECT stream_id, max(t_ns) FROM events WHERE kind = kind_no('agent_heartbeat') GROUP BY stream_id",
    action="see whether the process is there; restart it, or its recorder",
    unlike="`ENGINE_STALL`: the heartbeat goes on. A process that said `agent_stopped`, or was started again.",
    question=_QUESTION,
    needs=(Need((Kind.AGENT_HEARTBEAT,)),),
    thresholds=(Threshold("silence_s", 30, "s", "for how long nothing was heard of it while others spoke"),),
    evidence=Evidence.ABSENCE,
)
