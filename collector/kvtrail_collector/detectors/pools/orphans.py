"""`ORPHANS`: stored data without an index entry was found, and is still there."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Rule, Threshold

_QUESTION: Final = """
WITH file AS (
    SELECT stream_id, tier, kind, bytes, seq FROM window_events WHERE kind IN (kind_no('orphan_found'),
        kind_no('orphan_removed'))
        AND reason IN (reason_no('unindexed'), reason_no('foreign'), reason_no('torn'))
)
SELECT tier, count(*) FILTER (kind = kind_no('orphan_found')) - count(*) FILTER (kind = kind_no('orphan_removed')) AS files,
    coalesce(sum(bytes) FILTER (kind = kind_no('orphan_found')), 0)::BIGINT
        - coalesce(sum(bytes) FILTER (kind = kind_no('orphan_removed')), 0)::BIGINT AS bytes,
    0 AS touched_ns, refs_of(stream_id, seq) FILTER (kind = kind_no('orphan_found')) AS refs
FROM file GROUP BY stream_id, tier
HAVING count(*) FILTER (kind = kind_no('orphan_found')) - count(*) FILTER (kind = kind_no('orphan_removed')) >= $files
"""

RULE: Final = Rule(
    code="ORPHANS",
    family=Family.POOLS,
    basis=Basis.MECHANISM,
    means="Blocks lie on the device that the index does not know, as after a restart with the index in memory only.",
    check="SELECT tier, reason, count(*), sum(bytes) FROM events WHERE kind = kind_no('orphan_found') GROUP BY ALL",
    action="rebuild the index from the files, or delete them",
    unlike="`ACCOUNTING_RESET`: nobody looked. `TMP_LEAK`: files that were never finished.",
    question=_QUESTION,
    triggers=(Kind.ORPHAN_FOUND,),
    thresholds=(Threshold("files", 5, "files", "how many must be left"),),
)
