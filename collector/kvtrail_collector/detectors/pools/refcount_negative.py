"""`REFCOUNT_NEGATIVE`: a block was unpinned more often than pinned."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Rule

_QUESTION: Final = """
WITH change AS (
    SELECT stream_id, seq, block, tier, slot, kind,
        first_value(refs - delta) OVER copy + sum(delta) OVER copy AS balance, lag(refs) OVER copy AS refs_before
    FROM (SELECT *, CASE WHEN kind = kind_no('block_pinned') THEN 1 ELSE -1 END AS delta FROM window_events
        WHERE kind IN (kind_no('block_pinned'), kind_no('block_unpinned')))
    WINDOW copy AS (PARTITION BY stream_id, block, tier, slot ORDER BY seq)
)
SELECT tier, count(*) AS unpins_without_pin, count(*) AS cases, hex16(arg_min(block, seq)) AS block, 0 AS touched_ns,
    refs_of(stream_id, seq) AS refs
FROM change WHERE kind = kind_no('block_unpinned') AND (balance < 0 OR refs_before = 0)
GROUP BY stream_id, tier
"""

RULE: Final = Rule(
    code="REFCOUNT_NEGATIVE",
    family=Family.POOLS,
    basis=Basis.INVARIANT,
    means="A reference was given back twice: the block may be reused while somebody reads it.",
    check="SELECT block, kind, refs FROM events WHERE kind IN (kind_no('block_pinned'), "
    "kind_no('block_unpinned')) ORDER BY seq",
    action="a bug of the engine: look for the path that releases twice",
    unlike="A pin from before the window: the first event of the copy says how many references there were.",
    question=_QUESTION,
    triggers=(Kind.BLOCK_UNPINNED,),
    evidence=Evidence.ABSENCE,
)
