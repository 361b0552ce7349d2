"""`TIER_QUEUE`, seen in single loads: they waited for their turn many times longer than they were served."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH op AS (
    SELECT *, coalesce(queue_ns, started_ns - queued_ns) AS waited_ns, coalesce(io_ns, 0) + coalesce(copy_ns, 0) AS service_ns,
        CASE WHEN NOT is_load THEN 'write_back' WHEN prefetch IS NOT NULL THEN 'prefetch' ELSE 'demand' END AS work
    FROM window_ops WHERE closed_ns IS NOT NULL
), work AS (
    SELECT stream_id, tier, work, sum(service_ns) AS service_ns FROM op GROUP BY ALL
), led AS (
    SELECT stream_id, tier, arg_max(work, service_ns) AS work, max(service_ns) / greatest(sum(service_ns), 1) AS share
    FROM work GROUP BY ALL
), demand AS (SELECT *, ntile(2) OVER (PARTITION BY stream_id, tier ORDER BY waited_ns) AS half FROM op
    WHERE work = 'demand' AND waited_ns IS NOT NULL AND service_ns > 0
), summed AS (
    SELECT stream_id, tier, count(*) AS loads, sum(waited_ns) AS waited_ns, sum(service_ns) AS service_ns,
        max(waited_ns) AS longest_ns, median(service_ns) FILTER (half = 1) AS calm_ns,
        median(service_ns) FILTER (half = 2) AS queued_service_ns, refs_of(stream_id, seq) AS refs
    FROM demand GROUP BY ALL
)
SELECT summed.tier, loads, waited_ns AS touched_ns, waited_ns / (waited_ns + service_ns) AS share,
    waited_ns / loads / 1e6 AS mean_wait_ms, longest_ns / 1e6 AS longest_wait_ms, service_ns / loads / 1e6 AS mean_service_ms,
    led.work AS blamed_kind, led.share AS blamed_share, refs
FROM summed JOIN led USING (stream_id, tier)
WHERE loads >= $loads AND waited_ns >= $times * service_ns AND waited_ns / loads >= $mean_ms * 1e6
    AND queued_service_ns <= 1.5 * calm_ns
"""

RULE: Final = Rule(
    code="TIER_QUEUE",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="Of the waits seen, most was for a turn at the tier, not for the tier's own work. `blamed_kind` had "
    "most of its service.",
    check="SELECT greatest(src, dst) AS tier, avg(queue_ns) / 1e6, avg(io_ns) / 1e6 FROM events "
    "WHERE kind = kind_no('swap_in_loaded') GROUP BY ALL",
    action="lower the rate of the blamed kind of work on this tier",
    unlike="`TIER_SLOW`: the device itself takes longer for each load.",
    question=_QUESTION,
    needs=(Need((Kind.SWAP_IN_LOADED,), ("io_ns", "copy_ns")), Need((Kind.SWAP_IN_LOADED, Kind.SWAP_IN_QUEUED))),
    thresholds=(
        Threshold("loads", 20, "loads", "how many loads on demand must have been seen"),
        Threshold("times", 3, "ratio", "how many times longer they waited than they were served"),
        Threshold("mean_ms", 100, "ms", "and how long they waited on average"),
    ),
)
