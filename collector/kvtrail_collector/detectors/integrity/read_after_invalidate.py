"""`READ_AFTER_INVALIDATE`: a block was read after it had been invalidated, in whatever tier, by whatever path."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Rule

_QUESTION: Final = """
WITH gone AS (
    SELECT clock, block, tier, t_ns, reason FROM window_events JOIN window_clocks USING (stream_id)
    WHERE kind = kind_no('invalidated')
), first AS (SELECT clock, block, min(t_ns) AS first_ns FROM gone GROUP BY ALL
), made AS (
    SELECT clock, block, tier, t_ns FROM window_events JOIN window_clocks USING (stream_id)
    WHERE kind = kind_no('block_created') AND block IN (SELECT block FROM gone)
), read AS (
    SELECT own.stream_id, own.seq, own.t_ns, own.block, own.tier, own.ns, clock, first.first_ns
    FROM window_events AS own JOIN window_clocks USING (stream_id) JOIN first USING (clock, block)
    WHERE own.kind = kind_no('attention_read') AND own.t_ns > first.first_ns
), judged AS (
    SELECT read.*, made.t_ns AS made_ns, made.tier AS made_tier FROM read ASOF LEFT JOIN made
    ON made.clock = read.clock AND made.block = read.block AND made.t_ns <= read.t_ns
), bad AS (
    SELECT own.stream_id, own.seq, own.t_ns, own.block, own.tier, own.ns, min(gone.t_ns) AS gone_ns,
        arg_min(gone.reason, gone.t_ns) AS reason
    FROM judged AS own JOIN gone ON gone.clock = own.clock AND gone.block = own.block AND gone.t_ns < own.t_ns
    WHERE coalesce(made_ns < first_ns, true)
        OR (gone.t_ns > made_ns AND (gone.tier IS NULL OR gone.tier = own.tier OR gone.tier = made_tier))
    GROUP BY ALL
)
SELECT tier, any_value(ns) AS ns, count(*) AS reads, count(*) AS cases, hex16(arg_min(block, seq)) AS block,
    reason_name(mode(reason)) AS invalidated_for, max(t_ns - gone_ns) / 1e6 AS longest_after_ms, 0 AS touched_ns,
    refs_of(stream_id, seq) AS refs
FROM bad GROUP BY stream_id, tier
"""
"""A block that was made anew may be read until it is invalidated again: where it is read, or where it was made.

What is invalidated elsewhere after it was made anew is what was left of the old one. What came first is known of events
of one clock.
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
    evidence=Evidence.ABSENCE_EVER,
)
