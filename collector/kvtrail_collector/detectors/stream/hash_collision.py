"""`HASH_COLLISION`: equal block hashes were created in two namespaces; informs, and is no violation."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule

_QUESTION: Final = """
WITH made AS (
    SELECT stream_id, block, tier, ns, min(seq) AS seq FROM window_events WHERE kind = kind_no('block_created')
        AND ns IS NOT NULL
        AND (SELECT count(DISTINCT ns) FROM window_events WHERE kind = kind_no('block_created')) > 1 GROUP BY ALL
), twice AS (SELECT block, count(DISTINCT ns) AS namespaces FROM made GROUP BY block HAVING count(DISTINCT ns) > 1
)
SELECT count(DISTINCT block) AS blocks, max(namespaces) AS namespaces, hex16(arg_min(block, seq)) AS block, 0 AS touched_ns,
    refs_of(stream_id, seq) AS refs
FROM made JOIN twice USING (block)
HAVING count(*) > 0
"""

RULE: Final = Rule(
    code="HASH_COLLISION",
    family=Family.STREAM,
    basis=Basis.INVARIANT,
    means="One hash stands for blocks of two namespaces. kvtrail keeps them apart; an engine that keys by hash "
    "alone would not.",
    check="SELECT block, count(DISTINCT ns) FROM events WHERE kind = kind_no('block_created') GROUP BY block "
    "HAVING count(DISTINCT ns) > 1",
    action="none; put the namespace into the engine's key as typed members, not as joined text",
    unlike="`NAMESPACE_VIOLATION`: one block was read in two namespaces.",
    question=_QUESTION,
    needs=(Need((Kind.BLOCK_CREATED,), ("ns",)),),
)
