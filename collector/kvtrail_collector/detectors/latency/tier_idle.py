"""`TIER_IDLE`: a tier took writes and gave nothing back, because nothing was ever evicted above it."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH written AS (
    SELECT stream_id, dst AS tier, count(*) AS blocks, sum(bytes) AS bytes, refs_of(stream_id, seq) AS refs
    FROM window_events WHERE kind = kind_no('swap_out_written') GROUP BY ALL
), loaded AS (
    SELECT stream_id, src AS tier, count(*) AS blocks FROM window_events
    WHERE kind IN (kind_no('swap_in_queued'), kind_no('swap_in_loaded')) GROUP BY ALL
), evicted AS (SELECT stream_id, tier, count(*) AS blocks FROM window_events WHERE kind = kind_no('evicted') GROUP BY ALL
), used AS (SELECT stream_id, count(*) AS reads FROM window_events WHERE kind = kind_no('attention_read') GROUP BY ALL
)
SELECT written.tier, written.blocks AS blocks_written, written.bytes AS bytes_written, 0 AS blocks_read,
    used.reads AS reads_above,
    0 AS touched_ns, refs
FROM written JOIN used USING (stream_id)
WHERE written.blocks >= $blocks AND used.reads >= $reads
    AND NOT EXISTS (SELECT 1 FROM loaded WHERE loaded.stream_id = written.stream_id AND loaded.tier = written.tier)
    AND NOT EXISTS (SELECT 1 FROM evicted WHERE evicted.stream_id = written.stream_id AND evicted.tier < written.tier)
"""

RULE: Final = Rule(
    code="TIER_IDLE",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="All reused tokens came from faster tiers: the working set fits above this tier. It brings no speed, "
    "and is no fault.",
    check="SELECT kind, src, dst, count(*) FROM events WHERE kind IN (kind_no('swap_out_written'), kind_no('swap_in_loaded')) "
    "GROUP BY ALL",
    action="none; measure under a load that does not fit on the GPU",
    unlike="`WRITE_ONLY_TIER`: there blocks are evicted above, and still nothing is read.",
    question=_QUESTION,
    needs=(Need((Kind.ATTENTION_READ,)),),
    triggers=(Kind.SWAP_OUT_WRITTEN,),
    thresholds=(
        Threshold("blocks", 40, "blocks", "how many blocks must have been written to it"),
        Threshold("reads", 50, "reads", "how many reads there must have been above"),
    ),
)
