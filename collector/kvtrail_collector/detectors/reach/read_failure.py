"""`READ_FAILURE`: blocks are present, and a part of the reads of them fails."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
SELECT src AS tier, count(*) FILTER (kind = kind_no('swap_in_failed')) AS failed_blocks,
    count(*) FILTER (kind = kind_no('swap_in_loaded')) AS loaded_blocks,
    reason_name(mode(reason) FILTER (kind = kind_no('swap_in_failed'))) AS most_common_reason,
    count(*) FILTER (kind = kind_no('swap_in_failed')) / count(*) AS share, 0 AS touched_ns,
    refs_of(stream_id, seq) FILTER (kind = kind_no('swap_in_failed')) AS refs
FROM window_events WHERE kind = kind_no('swap_in_loaded')
    OR (kind = kind_no('swap_in_failed') AND reason IN (reason_no('io'), reason_no('timeout')))
GROUP BY stream_id, src
HAVING count(*) FILTER (kind = kind_no('swap_in_failed')) >= greatest($blocks, $share * count(*))
    AND count(*) FILTER (kind = kind_no('swap_in_loaded')) > 0
"""

RULE: Final = Rule(
    code="READ_FAILURE",
    family=Family.REACH,
    basis=Basis.MECHANISM,
    means="The tier has the blocks and cannot give them: I/O errors or timeouts, that look like misses in a hit rate.",
    check="SELECT src, reason, count(*) FROM events WHERE kind = kind_no('swap_in_failed') GROUP BY ALL",
    action="disable the tier until the device or the service is well",
    unlike="A plain miss: nothing was there. `LOAD_STUCK`: no read at all succeeds.",
    question=_QUESTION,
    needs=(Need((Kind.SWAP_IN_LOADED,)),),
    triggers=(Kind.SWAP_IN_FAILED,),
    thresholds=(
        Threshold("blocks", 5, "blocks", "how many reads must have failed"),
        Threshold("share", 0.02, "share", "and which share of all reads of the tier"),
    ),
)
