"""`LEASE_EXPIRED`: blocks were asked for after the lease of their lookup had run out."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Rule

_QUESTION: Final = """
WITH refused AS (
    SELECT * FROM window_events WHERE kind = kind_no('swap_in_failed') AND reason = reason_no('expired')
), lease AS (
    SELECT stream_id, id, t_ns, deadline_ns FROM window_events WHERE kind = kind_no('lease_granted') AND id IS NOT NULL
), joined AS (
    SELECT refused.*, own.queued_ns, coalesce(lease.t_ns, looked.t_ns) AS granted_ns, lease.deadline_ns AS until_ns
    FROM refused LEFT JOIN window_ops AS own ON own.stream_id = refused.stream_id AND own.op = refused.op
    LEFT JOIN (SELECT stream_id, op, any_value(cause) AS cause FROM window_events
        WHERE kind = kind_no('swap_in_queued') GROUP BY ALL)
        AS queued ON queued.stream_id = refused.stream_id AND queued.op = refused.op
    LEFT JOIN lease ON lease.stream_id = refused.stream_id AND lease.id = queued.cause
    LEFT JOIN (SELECT stream_id, req, min(t_ns) AS t_ns FROM window_events WHERE kind = kind_no('lookup_finished') GROUP BY ALL)
        AS looked ON looked.stream_id = refused.stream_id AND looked.req = refused.req
)
SELECT src AS tier, count(*) AS refused_blocks, max(t_ns - granted_ns) / 1e6 AS lookup_to_get_ms,
    max(until_ns - granted_ns) / 1e6 AS lease_ms, 0 AS touched_ns, refs_of(stream_id, seq) AS refs
FROM joined GROUP BY stream_id, src
"""

RULE: Final = Rule(
    code="LEASE_EXPIRED",
    family=Family.INTEGRITY,
    basis=Basis.INVARIANT,
    means="Between lookup and load more time passed than the store keeps its word: the load was refused.",
    check="SELECT req, t_ns FROM events WHERE kind = kind_no('swap_in_failed') AND reason = reason_no('expired')",
    action="take a longer lease, or renew it while the request waits",
    unlike="`READ_AFTER_RELEASE`: the read went through.",
    question=_QUESTION,
    triggers=(Kind.SWAP_IN_FAILED,),
)
