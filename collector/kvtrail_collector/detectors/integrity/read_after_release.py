"""`READ_AFTER_RELEASE`: a copy was read after it had left its place."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Rule

_QUESTION: Final = """
SELECT tier, count(*) AS reads, count(*) AS cases, hex16(arg_min(block, seq)) AS block,
    reason_name(mode(gone_reason)) AS released_for,
    max(t_ns - gone_ns) / 1e6 AS longest_after_ms, 0 AS touched_ns, refs_of(stream_id, seq) AS refs
FROM window_stale_reads WHERE gone_kind = kind_no('evicted') AND gone_reason <> reason_no('clear') GROUP BY stream_id, tier
"""

RULE: Final = Rule(
    code="READ_AFTER_RELEASE",
    family=Family.INTEGRITY,
    basis=Basis.INVARIANT,
    means="A read used a place after it was given up: somebody else may have written there.",
    check="SELECT block, tier, slot, kind, t_ns FROM events WHERE kind IN (kind_no('evicted'), kind_no('attention_read')) "
    "ORDER BY block, t_ns",
    action="hold a reference, or renew the lease, for as long as the block is read",
    unlike="A place that was filled again before the read. `READ_OF_CLEARED`: the whole tier was cleared.",
    question=_QUESTION,
    needs=(Need((Kind.ATTENTION_READ,)),),
    triggers=(Kind.EVICTED,),
    evidence=Evidence.ABSENCE,
)
