"""`PHANTOM_HIT`: the index says present, the load finds nothing."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
SELECT src AS tier, count(*) FILTER (kind = kind_no('swap_in_failed')) AS missing_blocks,
    count(*) FILTER (kind = kind_no('swap_in_loaded')) AS loaded_blocks,
    count(*) FILTER (kind = kind_no('swap_in_failed')) / count(*) AS share, 0 AS touched_ns,
    refs_of(stream_id, seq) FILTER (kind = kind_no('swap_in_failed')) AS refs
FROM window_events WHERE kind = kind_no('swap_in_loaded')
    OR (kind = kind_no('swap_in_failed') AND reason = reason_no('missing'))
GROUP BY stream_id, src
HAVING count(*) FILTER (kind = kind_no('swap_in_failed')) >= greatest($blocks, $share * count(*))
"""

RULE: Final = Rule(
    code="PHANTOM_HIT",
    family=Family.REACH,
    basis=Basis.MECHANISM,
    means="Lookups are answered with blocks that are gone: each costs a failed load and a late recompute.",
    check="SELECT src, count(*) FROM events WHERE kind = kind_no('swap_in_failed') AND reason = "
    "reason_no('missing') GROUP BY src",
    action="drop the index entry when its data goes",
    unlike="`READ_FAILURE`: the data is there, reading it fails.",
    question=_QUESTION,
    needs=(Need((Kind.SWAP_IN_LOADED, Kind.SWAP_IN_FAILED)),),
    triggers=(Kind.SWAP_IN_FAILED,),
    thresholds=(
        Threshold("blocks", 5, "blocks", "how many loads must have found nothing"),
        Threshold("share", 0.02, "share", "and which share of all loads of the tier"),
    ),
)
