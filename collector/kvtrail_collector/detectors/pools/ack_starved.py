"""`ACK_STARVED`: lent blocks were transferred long ago and are not given back: nobody reads the acknowledgements."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH lent AS (
    SELECT lease.stream_id, lease.block, lease.op, lease.seq, own.closed_ns FROM window_events AS lease
    JOIN window_ops AS own ON own.stream_id = lease.stream_id AND own.op = lease.op
    WHERE lease.kind = kind_no('lease_granted') AND own.closed_ns IS NOT NULL
), acked AS (SELECT DISTINCT stream_id, op, block FROM window_events WHERE kind = kind_no('transfer_acked')
), late AS (
    SELECT lent.*, last_ns - closed_ns AS age_ns FROM lent JOIN window_streams USING (stream_id)
    ANTI JOIN acked ON acked.stream_id = lent.stream_id AND acked.block = lent.block AND coalesce(acked.op, lent.op) = lent.op
    WHERE last_ns - closed_ns >= $age_s * 1e9
), pool AS (
    SELECT stream_id, arg_max(1 - (coalesce(evictable_bytes, 0) + coalesce(free_bytes, 0)) / capacity_bytes, t_ns) AS held
    FROM window_events WHERE kind = kind_no('capacity_sampled') AND tier = tier_no('gpu') AND capacity_bytes > 0
        GROUP BY stream_id
)
SELECT tier_no('gpu') AS tier, count(*) AS unacknowledged, count(*) AS cases, max(age_ns) / 1e9 AS oldest_s,
    any_value(pool.held) AS protected_share, sum(age_ns)::BIGINT AS touched_ns, refs_of(late.stream_id, late.seq) AS refs
FROM late LEFT JOIN pool USING (stream_id) GROUP BY late.stream_id HAVING count(*) >= $blocks
"""

RULE: Final = Rule(
    code="ACK_STARVED",
    family=Family.POOLS,
    basis=Basis.MECHANISM,
    means="Transfers are done on the device, but their blocks stay protected, since acknowledgements are not looked at.",
    check="SELECT op, max(kind) FROM events WHERE kind IN (kind_no('lease_granted'), kind_no('transfer_acked')) GROUP BY op",
    action="poll acknowledgements in every step, also when only decoding or idle",
    unlike="Transfers that still run.",
    question=_QUESTION,
    needs=(Need((Kind.LEASE_GRANTED,), ("op",)),),
    triggers=(Kind.LEASE_GRANTED,),
    thresholds=(
        Threshold("age_s", 30, "s", "how long after its transfer a block is overdue"),
        Threshold("blocks", 20, "blocks", "how many must be overdue"),
    ),
    evidence=Evidence.ABSENCE,
)
