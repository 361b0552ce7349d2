"""`WRITE_ONLY_TIER`: much goes into a tier and nothing comes out, though blocks are evicted above it."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Rule, Threshold

_QUESTION: Final = """
WITH written AS (
    SELECT stream_id, tier, sum(bytes) AS bytes, count(*) AS ops, refs_of(stream_id, seq) AS refs,
        sum(coalesce(io_ns, 0) + coalesce(copy_ns, 0)) AS service_ns
    FROM window_ops WHERE NOT is_load AND closed_rows > failed_rows GROUP BY stream_id, tier
), loaded AS (
    SELECT stream_id, src AS tier, sum(bytes) AS bytes FROM window_ops WHERE is_load GROUP BY ALL
), evicted AS (SELECT stream_id, tier, count(*) AS blocks FROM window_events WHERE kind = kind_no('evicted') GROUP BY ALL
)
SELECT written.tier, written.bytes / 1e9 AS gb_written, coalesce(loaded.bytes, 0) / 1e9 AS gb_read,
    (SELECT sum(blocks) FROM evicted WHERE evicted.stream_id = written.stream_id AND evicted.tier < written.tier)
        AS evicted_above, service_ns::BIGINT AS touched_ns, refs
FROM written LEFT JOIN loaded USING (stream_id, tier)
WHERE written.bytes >= $gib * 1073741824 AND coalesce(loaded.bytes, 0) <= 0.01 * written.bytes
    AND (SELECT sum(blocks) FROM evicted WHERE evicted.stream_id = written.stream_id AND evicted.tier < written.tier) > 0
"""

RULE: Final = Rule(
    code="WRITE_ONLY_TIER",
    family=Family.REACH,
    basis=Basis.MECHANISM,
    means="The tier is paid for with writes and never read, though there is eviction above: what it holds is not asked for.",
    check="SELECT kind, src, dst, sum(bytes) FROM events WHERE kind IN (kind_no('swap_out_written'), "
    "kind_no('swap_in_loaded')) "
    "GROUP BY ALL",
    action="store blocks at their second use instead of their first",
    unlike="`TIER_IDLE`: nothing was evicted above, so nothing had to come back.",
    question=_QUESTION,
    triggers=(Kind.SWAP_OUT_WRITTEN,),
    thresholds=(Threshold("gib", 8, "GiB", "how much must have been written"),),
)
