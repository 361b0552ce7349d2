"""`REMOTE_BANDWIDTH_DEGRADED`: loads of the same size from the remote tier come at a fraction of the former rate."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH load AS (
    SELECT *, bytes / io_ns AS gb_per_s, coalesce(queue_ns, 0) AS waited_ns,
        ntile(3) OVER (PARTITION BY stream_id ORDER BY closed_ns) AS third
    FROM window_ops WHERE is_load AND src = tier_no('remote') AND io_ns > 0 AND bytes > 0
), part AS (
    SELECT stream_id, third, count(*) AS loads, median(gb_per_s) AS gb_per_s, median(bytes) AS bytes, median(io_ns) AS io_ns,
        median(waited_ns) AS waited_ns, sum(io_ns) AS total_ns, refs_of(stream_id, seq) AS refs
    FROM load GROUP BY stream_id, third
)
SELECT tier_no('remote') AS tier, early.gb_per_s AS gb_per_s_before, late.gb_per_s AS gb_per_s_after,
    late.bytes AS median_bytes,
    early.io_ns / 1e6 AS read_before_ms, late.io_ns / 1e6 AS read_after_ms, early.loads + late.loads AS loads,
    1 - late.gb_per_s / early.gb_per_s AS share, greatest(late.total_ns - late.loads * early.io_ns, 0)::BIGINT AS touched_ns,
    late.refs
FROM part AS early JOIN part AS late USING (stream_id)
WHERE early.third = 1 AND late.third = 3 AND early.loads >= $loads AND late.loads >= $loads
    AND late.gb_per_s * $times <= early.gb_per_s AND late.bytes BETWEEN 0.75 * early.bytes AND 1.33 * early.bytes
    AND late.waited_ns - early.waited_ns <= late.io_ns - early.io_ns
"""

RULE: Final = Rule(
    code="REMOTE_BANDWIDTH_DEGRADED",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="The link to the remote tier, or the tier, gives far fewer bytes a second than it did; sizes are the same.",
    check="SELECT t_ns, bytes / io_ns AS gb_per_s FROM events WHERE kind = kind_no('swap_in_loaded') AND src = "
    "tier_no('remote') "
    "AND io_ns > 0 ORDER BY t_ns",
    action="recompute instead of reading from the remote tier until its rate is back",
    unlike="`TIER_QUEUE`: the loads wait before they are served.",
    question=_QUESTION,
    needs=(Need((Kind.SWAP_IN_LOADED,), ("io_ns",)), Need((Kind.SWAP_IN_LOADED,), ("bytes",))),
    thresholds=(
        Threshold("loads", 5, "loads", "loads in the first and in the last third"),
        Threshold("times", 2, "ratio", "how many times lower the rate became"),
    ),
)
