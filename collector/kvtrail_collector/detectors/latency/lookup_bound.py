"""`LOOKUP_BOUND`: asking where the blocks are takes longer than fetching them."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH asked AS (
    SELECT stream_id, req, sum(duration_ns) AS lookup_ns, max(tier) AS tier, min(seq) AS seq
    FROM window_events WHERE kind = kind_no('lookup_finished') AND duration_ns IS NOT NULL GROUP BY stream_id, req
), fetched AS (
    SELECT stream_id, req, max(tier) AS tier, sum(coalesce(alloc_ns, 0) + coalesce(submit_ns, 0) + coalesce(io_ns, 0)
        + coalesce(copy_ns, 0) + coalesce(sync_ns, 0)) AS fetch_ns
    FROM window_ops WHERE is_load AND req IS NOT NULL AND closed_ns IS NOT NULL GROUP BY stream_id, req
)
SELECT max(coalesce(asked.tier, fetched.tier)) AS tier, count(*) AS requests, sum(lookup_ns) AS touched_ns,
    sum(lookup_ns) / greatest(sum(lookup_ns + coalesce(fetch_ns, 0)), 1) AS share,
    sum(lookup_ns) / count(*) / 1e6 AS mean_lookup_ms, max(lookup_ns) / 1e6 AS longest_lookup_ms,
    sum(coalesce(fetch_ns, 0)) / count(*) / 1e6 AS mean_fetch_ms, refs_of(stream_id, asked.seq) AS refs
FROM asked JOIN fetched USING (stream_id, req) GROUP BY stream_id
HAVING sum(lookup_ns) > $times * sum(fetch_ns) AND avg(lookup_ns) >= $mean_ms * 1e6
"""

RULE: Final = Rule(
    code="LOOKUP_BOUND",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="Requests spend more time on finding out where their blocks are than on fetching them.",
    check="SELECT tier, avg(duration_ns) / 1e6 FROM events WHERE kind = kind_no('lookup_finished') GROUP BY tier",
    action="cache the lookup, or ask the slow index for fewer blocks",
    unlike="A slow tier: there the lookup is short and the load is long.",
    question=_QUESTION,
    needs=(Need((Kind.LOOKUP_FINISHED,)), Need((Kind.SWAP_IN_LOADED,), ("io_ns", "copy_ns"))),
    thresholds=(
        Threshold("times", 1, "ratio", "lookup time over the time of the loads that followed"),
        Threshold("mean_ms", 50, "ms", "the least mean time of a request's lookups"),
    ),
)
