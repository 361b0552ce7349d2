"""`OFFLOAD_NOT_PAYING`: for prefixes of this length, restoring usually takes as long as computing would."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH load AS (
    SELECT *, coalesce(closed_ns - queued_ns, coalesce(queue_ns, 0) + coalesce(io_ns, 0) + coalesce(copy_ns, 0)) AS restore_ns,
        coalesce(floor(log2(greatest(tokens, 1))), -1) AS class
    FROM window_ops WHERE is_load AND prefetch IS NULL AND closed_ns IS NOT NULL AND failed_rows = 0
        AND recompute_estimate_ns > 0
)
SELECT tier, CASE WHEN class >= 0 THEN pow(2, class + 1)::BIGINT END AS prefix_tokens_below, count(*) AS loads,
    median(restore_ns) / 1e6 AS restore_p50_ms, median(recompute_estimate_ns) / 1e6 AS recompute_p50_ms,
    greatest(sum(restore_ns - recompute_estimate_ns), 0)::BIGINT AS touched_ns,
    count(*) FILTER (restore_ns >= recompute_estimate_ns) / count(*) AS share, refs_of(stream_id, seq) AS refs
FROM load GROUP BY stream_id, tier, class
HAVING count(*) >= $loads AND median(restore_ns) >= median(recompute_estimate_ns) AND median(restore_ns) >= $restore_ms * 1e6
"""

RULE: Final = Rule(
    code="OFFLOAD_NOT_PAYING",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="The usual load of this size is no faster than the engine's own estimate for computing the tokens again.",
    check="SELECT approx_quantile(recompute_estimate_ns, 0.5) / 1e6 FROM events WHERE kind = kind_no('swap_in_queued')",
    action="raise the least prefix length that is restored, or serve from the GPU only",
    unlike="`TIER_SLOW`: only the tail of the loads is slow.",
    question=_QUESTION,
    needs=(
        Need((Kind.SWAP_IN_LOADED,)),
        Need((Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_STARTED), ("recompute_estimate_ns",)),
    ),
    thresholds=(
        Threshold("loads", 20, "loads", "how many loads of one size class there must be"),
        Threshold("restore_ms", 5, "ms", "below this a load is not worth a word"),
    ),
)
