"""`TMP_LEAK`: unfinished files pile up, from writes that were cut off."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Rule, Threshold

_QUESTION: Final = """
WITH file AS (
    SELECT stream_id, tier, kind, bytes, seq FROM window_events WHERE kind IN (kind_no('orphan_found'),
        kind_no('orphan_removed'))
        AND reason = reason_no('tmp')
)
SELECT tier, count(*) FILTER (kind = kind_no('orphan_found')) - count(*) FILTER (kind = kind_no('orphan_removed')) AS files,
    sum(bytes) FILTER (kind = kind_no('orphan_found')) AS bytes_found, 0 AS touched_ns,
    refs_of(stream_id, seq) FILTER (kind = kind_no('orphan_found')) AS refs
FROM file GROUP BY stream_id, tier
HAVING count(*) FILTER (kind = kind_no('orphan_found')) - count(*) FILTER (kind = kind_no('orphan_removed')) >= $files
"""

RULE: Final = Rule(
    code="TMP_LEAK",
    family=Family.POOLS,
    basis=Basis.MECHANISM,
    means="Each restart leaves files that were begun and never renamed; no index counts them, no eviction takes them.",
    check="SELECT count(*), sum(bytes) FROM events WHERE kind = kind_no('orphan_found') AND reason = reason_no('tmp')",
    action="delete unfinished files at start",
    unlike="Files that are being written now: they are removed or renamed.",
    question=_QUESTION,
    triggers=(Kind.ORPHAN_FOUND,),
    thresholds=(Threshold("files", 3, "files", "how many must be left"),),
)
