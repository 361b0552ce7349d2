"""`OFFLOAD_STARVED`: queued writes are dropped, since their blocks were reused before their turn came."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Rule, Threshold

_QUESTION: Final = """
SELECT dst AS tier, count(*) FILTER (kind = kind_no('swap_out_skipped')) AS dropped,
    count(*) FILTER (kind = kind_no('swap_out_written')) AS written,
    count(*) FILTER (kind = kind_no('swap_out_skipped')) / count(*) AS share, 0 AS touched_ns,
    refs_of(stream_id, seq) FILTER (kind = kind_no('swap_out_skipped')) AS refs
FROM window_events WHERE kind = kind_no('swap_out_written')
    OR (kind = kind_no('swap_out_skipped') AND reason = reason_no('block_reused'))
GROUP BY stream_id, dst
HAVING count(*) FILTER (kind = kind_no('swap_out_skipped')) >= greatest($blocks, $share * count(*))
"""

RULE: Final = Rule(
    code="OFFLOAD_STARVED",
    family=Family.REACH,
    basis=Basis.MECHANISM,
    means="Blocks that should be saved are overwritten while their write waits: the tier does not get what it is there for.",
    check="SELECT dst, count(*) FROM events WHERE kind = kind_no('swap_out_skipped') AND reason = "
    "reason_no('block_reused') GROUP BY dst",
    action="hold blocks until their write is done, or drain the queue sooner",
    unlike="Writes that are skipped because the block is stored already.",
    question=_QUESTION,
    triggers=(Kind.SWAP_OUT_SKIPPED,),
    thresholds=(
        Threshold("blocks", 20, "blocks", "how many writes must have been dropped"),
        Threshold("share", 0.3, "share", "and which share of those that were due"),
    ),
)
