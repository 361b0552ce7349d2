"""`SWAP_SATURATED`: many requests are swapped out, and none is swapped in for seconds."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Rule, Threshold

_QUESTION: Final = """
WITH turn AS (
    SELECT stream_id, req, max(t_ns) FILTER (kind = kind_no('request_preempted')) AS out_ns, min(seq) AS seq,
        max(t_ns) FILTER (kind <> kind_no('request_preempted')) AS back_ns
    FROM window_events WHERE kind IN (kind_no('request_preempted'), kind_no('request_resumed'), kind_no('request_finished'),
        kind_no('request_cancelled'), kind_no('request_rejected')) AND req IS NOT NULL
        AND (kind <> kind_no('request_preempted') OR coalesce(reason, reason_no('swap')) IN (reason_no('swap'),
            reason_no('capacity')))
    GROUP BY stream_id, req
), gone AS (
    SELECT stream_id, count(*) AS requests, max(out_ns) AS last_out_ns, sum(out_ns)::HUGEINT AS out_ns,
        refs_of(stream_id, seq) AS refs
    FROM turn WHERE out_ns IS NOT NULL AND coalesce(back_ns, -1) < out_ns GROUP BY stream_id
), moved AS (SELECT stream_id, max(t_ns) AS t_ns FROM window_events WHERE kind = kind_no('swap_in_loaded') GROUP BY stream_id
), fill AS (
    SELECT stream_id, arg_max(used_bytes / capacity_bytes, t_ns) AS fill FROM window_events
    WHERE kind = kind_no('capacity_sampled') AND tier = tier_no('host') AND capacity_bytes > 0 AND ns IS NULL GROUP BY stream_id
)
SELECT tier_no('host') AS tier, requests AS swapped_out, requests AS cases, fill.fill AS host_fill,
    (last_ns - coalesce(moved.t_ns, first_ns)) / 1e9 AS no_swap_in_for_s,
        (requests::HUGEINT * last_ns - out_ns)::BIGINT AS touched_ns, refs
FROM gone JOIN window_streams USING (stream_id) LEFT JOIN moved USING (stream_id) LEFT JOIN fill USING (stream_id)
WHERE requests >= $requests AND last_ns - coalesce(moved.t_ns, first_ns) >= $silence_s * 1e9
"""

RULE: Final = Rule(
    code="SWAP_SATURATED",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="So many requests were swapped out that nothing finishes and nothing can come back: progress stops.",
    check="SELECT kind, count(*), max(t_ns) FROM events WHERE kind IN (kind_no('request_preempted'), "
    "kind_no('swap_in_loaded')) "
    "GROUP BY kind",
    action="lower admission",
    unlike="A few requests that were preempted and wait their turn.",
    question=_QUESTION,
    triggers=(Kind.REQUEST_PREEMPTED,),
    thresholds=(
        Threshold("requests", 10, "requests", "how many must be swapped out at the end"),
        Threshold("silence_s", 5, "s", "for how long none may have come back"),
    ),
    evidence=Evidence.ABSENCE,
)
