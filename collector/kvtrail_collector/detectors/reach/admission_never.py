"""`ADMISSION_NEVER`: every candidate for a tier stays below its threshold."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Rule, Threshold

_QUESTION: Final = """
WITH refused AS (
    SELECT stream_id, dst AS tier, count(*) AS candidates, refs_of(stream_id, seq) AS refs FROM window_events
    WHERE kind = kind_no('swap_out_skipped') AND reason = reason_no('below_threshold') GROUP BY ALL
), taken AS (
    SELECT stream_id, dst AS tier, count(*) AS blocks FROM window_events
    WHERE kind IN (kind_no('swap_out_queued'), kind_no('swap_out_written')) GROUP BY ALL
)
SELECT tier, candidates, 0 AS admitted, 0 AS touched_ns, refs FROM refused LEFT JOIN taken USING (stream_id, tier)
WHERE candidates >= $candidates AND coalesce(taken.blocks, 0) = 0
"""

RULE: Final = Rule(
    code="ADMISSION_NEVER",
    family=Family.REACH,
    basis=Basis.MECHANISM,
    means="Nothing passes the admission threshold of this tier: it stays empty, by a number that cannot be reached.",
    check="SELECT dst, reason, count(*) FROM events WHERE kind = kind_no('swap_out_skipped') GROUP BY ALL",
    action="lower the threshold, or count the touches that it waits for",
    unlike="A threshold that keeps most out, and lets some in.",
    question=_QUESTION,
    triggers=(Kind.SWAP_OUT_SKIPPED,),
    thresholds=(Threshold("candidates", 200, "blocks", "how many must have been refused"),),
)
