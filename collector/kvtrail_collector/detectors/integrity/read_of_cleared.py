"""`READ_OF_CLEARED`: a copy was read after its tier had been cleared."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Rule

_QUESTION: Final = """
WITH cleared AS (
    SELECT stream_id, seq, t_ns, tier, ns FROM window_events WHERE kind = kind_no('tier_cleared')
), read AS (
    SELECT own.stream_id, own.seq, own.t_ns, own.block, own.tier, own.slot, coalesce(own.ns, request.ns) AS ns,
        max(cleared.seq) AS gone_seq, max(cleared.t_ns) AS gone_ns
    FROM window_events AS own LEFT JOIN window_requests AS request
        ON request.stream_id = own.stream_id AND request.req = own.req
    JOIN cleared ON cleared.stream_id = own.stream_id AND cleared.tier = own.tier AND cleared.seq < own.seq
        AND (cleared.ns IS NULL OR cleared.ns = coalesce(own.ns, request.ns))
    WHERE own.kind = kind_no('attention_read') GROUP BY ALL
)
SELECT tier, any_value(ns) AS ns, count(*) AS reads, count(*) AS cases, hex16(arg_min(block, seq)) AS block,
    max(t_ns - gone_ns) / 1e6 AS longest_after_ms, 0 AS touched_ns, refs_of(stream_id, seq) AS refs
FROM read WHERE NOT EXISTS (
    SELECT 1 FROM window_events AS fill WHERE fill.kind IN (kind_no('block_created'), kind_no('swap_in_loaded'),
        kind_no('swap_out_written')) AND fill.stream_id = read.stream_id AND fill.block = read.block
        AND coalesce(fill.dst, fill.tier) = read.tier AND fill.seq > gone_seq AND fill.seq < read.seq
) GROUP BY stream_id, tier
"""

RULE: Final = Rule(
    code="READ_OF_CLEARED",
    family=Family.INTEGRITY,
    basis=Basis.INVARIANT,
    means="A clear did not end all copies, or a reader kept the place of one.",
    check="SELECT kind, t_ns, block, slot FROM events WHERE kind IN (kind_no('tier_cleared'), "
    "kind_no('attention_read')) ORDER BY t_ns",
    action="a bug of the engine: end every copy before the clear is said",
    unlike="A block that was created or loaded again after the clear.",
    question=_QUESTION,
    needs=(Need((Kind.ATTENTION_READ,)),),
    triggers=(Kind.TIER_CLEARED,),
    evidence=Evidence.ABSENCE,
)
