"""`PIN_LEAK`: blocks stay pinned for a transfer that never came."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Rule, Threshold

_QUESTION: Final = """
WITH pinned AS (
    SELECT stream_id, block, tier, slot, arg_max(kind, t_ns) AS kind, arg_max(refs, t_ns) AS refs_left, max(t_ns) AS t_ns,
        arg_max(seq, t_ns) AS seq
    FROM window_events WHERE kind IN (kind_no('block_pinned'), kind_no('block_unpinned')) GROUP BY ALL
), held AS (SELECT * FROM pinned WHERE kind = kind_no('block_pinned') AND refs_left > 0
), used AS (
    SELECT DISTINCT stream_id, block FROM window_events WHERE block IS NOT NULL AND EXISTS (SELECT 1 FROM held)
        AND kind IN (kind_no('swap_in_queued'), kind_no('swap_in_loaded'), kind_no('swap_out_queued'),
            kind_no('swap_out_written'),
            kind_no('attention_read'), kind_no('evicted'), kind_no('invalidated'))
)
SELECT tier, count(*) AS blocks, count(*) AS cases, max(last_ns - held.t_ns) / 1e9 AS oldest_s,
    sum(last_ns - held.t_ns)::BIGINT AS touched_ns, refs_of(held.stream_id, held.seq) AS refs
FROM held JOIN window_streams USING (stream_id) ANTI JOIN used ON used.stream_id = held.stream_id AND used.block = held.block
WHERE last_ns - held.t_ns >= $age_s * 1e9 GROUP BY held.stream_id, tier HAVING count(*) >= $blocks
"""

RULE: Final = Rule(
    code="PIN_LEAK",
    family=Family.POOLS,
    basis=Basis.MECHANISM,
    means="Pins were taken and nothing followed: their blocks can never be evicted, and the pool shrinks.",
    check="SELECT block, max(t_ns), arg_max(refs, t_ns) FROM events "
    "WHERE kind IN (kind_no('block_pinned'), kind_no('block_unpinned')) GROUP BY block",
    action="unpin what has been held for longer than a load can take",
    unlike="Blocks that are pinned for a load that runs.",
    question=_QUESTION,
    triggers=(Kind.BLOCK_PINNED,),
    thresholds=(
        Threshold("age_s", 60, "s", "from which age a pin without a transfer counts"),
        Threshold("blocks", 5, "blocks", "how many there must be"),
    ),
    evidence=Evidence.ABSENCE_EVER,
)
