"""`GHOST`: by its events a tier holds more blocks than it has room for."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH capacity AS (
    SELECT stream_id, tier, max(capacity_bytes) AS bytes FROM window_events
    WHERE kind IN (kind_no('tier_declared'), kind_no('capacity_sampled')) AND capacity_bytes > 0 AND ns IS NULL GROUP BY ALL
), fact AS (
    SELECT stream_id, coalesce(dst, tier) AS tier, kind, block, bytes, seq FROM window_events
    WHERE kind IN (kind_no('block_created'), kind_no('swap_in_loaded'), kind_no('swap_out_written'), kind_no('evicted'),
        kind_no('invalidated')) AND block IS NOT NULL
), net AS (
    SELECT stream_id, tier, count(*) FILTER (kind NOT IN (kind_no('evicted'), kind_no('invalidated')))
        - count(*) FILTER (kind IN (kind_no('evicted'), kind_no('invalidated'))) AS blocks,
        median(bytes) FILTER (bytes > 0) AS block_bytes
    FROM fact GROUP BY ALL
), suspect AS (
    SELECT net.*, floor(capacity.bytes / block_bytes) AS places FROM net JOIN capacity USING (stream_id, tier)
    WHERE block_bytes > 0 AND net.blocks > floor(capacity.bytes / block_bytes)
), resident AS (
    SELECT fact.stream_id, fact.tier, fact.block, arg_max(kind, seq) AS kind, max(seq) AS seq FROM fact
    JOIN suspect USING (stream_id, tier) GROUP BY ALL
)
SELECT resident.tier, count(*) AS resident_blocks, any_value(places) AS places, count(*) - any_value(places) AS ghosts,
    count(*) - any_value(places) AS cases, 0 AS touched_ns, refs_of(resident.stream_id, resident.seq) AS refs
FROM resident JOIN suspect USING (stream_id, tier) WHERE kind NOT IN (kind_no('evicted'), kind_no('invalidated'))
GROUP BY resident.stream_id, resident.tier HAVING count(*) > any_value(places) * $times
"""

RULE: Final = Rule(
    code="GHOST",
    family=Family.STREAM,
    basis=Basis.INVARIANT,
    means="Blocks left the tier and nobody said so: some that seem resident are not there.",
    check="SELECT coalesce(dst, tier), kind, count(*) FROM events WHERE kind IN (kind_no('block_created'), "
    "kind_no('evicted')) GROUP BY ALL",
    action="a bug of the producer: emit every removal, once",
    unlike="`TIER_BLIND`: the tier never reports removals, and its size is not known.",
    question=_QUESTION,
    needs=(
        Need((Kind.TIER_DECLARED, Kind.CAPACITY_SAMPLED), ("capacity_bytes",)),
        Need((Kind.BLOCK_CREATED, Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN), ("bytes",)),
    ),
    thresholds=(Threshold("times", 1.0, "ratio", "of the places above which blocks must be ghosts"),),
    evidence=Evidence.ABSENCE,
)
