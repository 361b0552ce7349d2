"""`BROKEN_PREFIX`: blocks lie in a tier that no lookup can reach, since an ancestor of theirs is not in it."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH RECURSIVE asked AS (
    SELECT stream_id, count(*) AS lookups, sum(tokens_host) AS host, sum(tokens_nvme) AS nvme, sum(tokens_remote) AS remote
    FROM window_events WHERE kind = kind_no('lookup_finished') GROUP BY stream_id
), stored AS (
    SELECT stream_id, dst AS tier, block, min(seq) AS seq FROM window_events JOIN asked USING (stream_id)
    WHERE kind = kind_no('swap_out_written') AND block IS NOT NULL AND lookups >= $lookups
        AND coalesce(CASE dst WHEN tier_no('host') THEN host WHEN tier_no('nvme') THEN nvme ELSE remote END, 0) = 0 GROUP BY ALL
), known AS (
    SELECT stream_id, block, any_value(parent) AS parent FROM window_events
    WHERE kind = kind_no('block_created') AND block IN (SELECT block FROM stored) GROUP BY ALL
), placed AS (SELECT stored.*, known.parent FROM stored JOIN known USING (stream_id, block)
), reachable AS (
    SELECT stream_id, tier, block FROM placed WHERE parent IS NULL
    UNION
    SELECT placed.stream_id, placed.tier, placed.block FROM placed JOIN reachable
    ON reachable.stream_id = placed.stream_id AND reachable.tier = placed.tier AND reachable.block = placed.parent
), summed AS (
    SELECT placed.stream_id, placed.tier, count(*) AS stored, count(*) FILTER (reachable.block IS NULL) AS unreachable,
        refs_of(placed.stream_id, placed.seq) FILTER (reachable.block IS NULL) AS refs
    FROM placed LEFT JOIN reachable USING (stream_id, tier, block) GROUP BY ALL
)
SELECT tier, stored AS blocks_stored, unreachable, unreachable AS cases, unreachable / stored AS share, lookups,
    0 AS hit_tokens,
    0 AS touched_ns, refs
FROM summed JOIN asked USING (stream_id)
WHERE unreachable >= $blocks AND unreachable >= $share * stored
"""

RULE: Final = Rule(
    code="BROKEN_PREFIX",
    family=Family.REACH,
    basis=Basis.MECHANISM,
    means="The tier holds the tails of prefixes without their heads: a lookup stops at the first miss, and never gets to them.",
    check="SELECT block, parent FROM events WHERE kind = kind_no('block_created') AND block IN "
    "(SELECT block FROM events WHERE kind = kind_no('swap_out_written'))",
    action="write through the heads too, or write chains from their root",
    unlike="A tier that lookups do hit: its blocks are reached, if by another way.",
    question=_QUESTION,
    needs=(Need((Kind.BLOCK_CREATED,), ("parent",)), Need((Kind.LOOKUP_FINISHED,))),
    triggers=(Kind.SWAP_OUT_WRITTEN,),
    thresholds=(
        Threshold("blocks", 10, "blocks", "how many must be unreachable"),
        Threshold("share", 0.5, "share", "and which share of those stored"),
        Threshold("lookups", 20, "lookups", "how many lookups must have found nothing there"),
    ),
    evidence=Evidence.ABSENCE_EVER,
)
