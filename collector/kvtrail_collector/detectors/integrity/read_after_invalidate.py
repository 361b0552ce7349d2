"""`READ_AFTER_INVALIDATE`: a block was read after it had been invalidated, in whatever tier, by whatever path."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Rule

_QUESTION: Final = """
WITH gone AS (
    SELECT engine, block, min(t_ns) AS t_ns, arg_min(reason, t_ns) AS reason FROM window_events JOIN streams USING (stream_id)
    WHERE kind = kind_no('invalidated') GROUP BY ALL
), read AS (
    SELECT own.stream_id, own.seq, own.t_ns, own.block, own.tier, own.ns, gone.t_ns AS gone_ns, gone.reason, streams.engine
    FROM window_events AS own JOIN streams USING (stream_id) JOIN gone ON gone.engine = streams.engine
        AND gone.block = own.block
    WHERE own.kind = kind_no('attention_read') AND own.t_ns > gone.t_ns
)
SELECT read.tier, any_value(read.ns) AS ns, count(*) AS reads, count(*) AS cases, hex16(arg_min(read.block, read.seq)) AS block,
    reason_name(mode(read.reason)) AS invalidated_for, max(read.t_ns - gone_ns) / 1e6 AS longest_after_ms, 0 AS touched_ns,
    refs_of(read.stream_id, read.seq) AS refs
FROM read WHERE NOT EXISTS (
    SELECT 1 FROM window_events AS fresh JOIN streams AS home USING (stream_id) WHERE fresh.kind = kind_no('block_created')
        AND home.engine = read.engine AND fresh.block = read.block AND fresh.t_ns >= gone_ns AND fresh.t_ns <= read.t_ns
) GROUP BY read.stream_id, read.tier
"""

RULE: Final = Rule(
    code="READ_AFTER_INVALIDATE",
    family=Family.INTEGRITY,
    basis=Basis.INVARIANT,
    means="Content that must not be used any more was used: a deleted document, a revoked permission, an old model.",
    check="SELECT block, tier, kind, t_ns FROM events WHERE block IN (SELECT block FROM events "
    "WHERE kind = kind_no('invalidated')) ORDER BY block, t_ns",
    action="treat it as an incident: serve without the cache until every copy is gone",
    unlike="A new block of the same hash that was created after the invalidation.",
    question=_QUESTION,
    needs=(Need((Kind.ATTENTION_READ,)),),
    triggers=(Kind.INVALIDATED,),
    evidence=Evidence.ABSENCE,
)
