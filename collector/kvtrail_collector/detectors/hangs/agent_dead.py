"""`AGENT_DEAD`: the heartbeat of a recorder stopped without a farewell, while others of its engine go on."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.one_clock import HOSTS_NS
from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Rule, Threshold

_QUESTION: Final = f"""
WITH life AS (
    SELECT stream_id, count(*) FILTER (kind = kind_no('agent_heartbeat')) AS beats, arg_max(seq, t_ns) AS seq,
        count(*) FILTER (kind = kind_no('agent_stopped')) AS farewells
    FROM window_events GROUP BY stream_id
), quiet AS (
    SELECT *, greatest(max(last_ns) OVER (PARTITION BY clock) - last_ns, coalesce(
        max(last_ns + offset_ns) OVER (PARTITION BY engine) - (last_ns + offset_ns) - {HOSTS_NS}, 0)) AS silent_ns
    FROM window_clocks
)
SELECT engine, rank, silent_ns / 1e9 AS silent_for_s, beats AS heartbeats_before, silent_ns AS touched_ns,
    1000 AS cases, [{{'stream': life.stream_id, 'seq': life.seq}}] AS refs
FROM life JOIN quiet AS own USING (stream_id)
WHERE beats > 0 AND farewells = 0 AND silent_ns >= $silence_s * 1e9 AND NOT EXISTS (
    SELECT 1 FROM window_clocks AS heir
    WHERE heir.engine = own.engine AND heir.rank = own.rank AND heir.stream_id <> own.stream_id
        AND CASE WHEN heir.clock = own.clock THEN heir.first_ns > own.last_ns
            ELSE coalesce(heir.first_ns + heir.offset_ns > own.last_ns + own.offset_ns, true) END)
"""  # noqa: S608 - a number of ours
"""Others of its engine speak later by its own clock, or by the time of day, by which hosts may differ.

Who was started again has an heir; of clocks that cannot be compared, any other epoch of the rank may be it.
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
