"""`CAPACITY_CLIFF`: latency steps up as a pool crosses its last percents."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH sample AS (
    SELECT stream_id, tier, t_ns, in_flight, (used_bytes - least(coalesce(evictable_bytes, 0),
        used_bytes)) / capacity_bytes AS fill
    FROM window_events WHERE kind = kind_no('capacity_sampled') AND ns IS NULL AND capacity_bytes > 0 AND used_bytes IS NOT NULL
), request AS (
    SELECT stream_id, seq, arrived_ns AS t_ns, first_token_ns - arrived_ns AS ttft_ns, prompt_tokens FROM window_requests
    WHERE first_token_ns IS NOT NULL
), met AS (
    SELECT request.*, sample.tier, sample.fill, sample.in_flight,
        CASE WHEN fill >= $full THEN 'full' WHEN fill >= $full - 0.15 THEN 'near' ELSE 'calm' END AS band
    FROM request JOIN (SELECT DISTINCT stream_id, tier FROM sample) AS pool ON pool.stream_id = request.stream_id
    ASOF JOIN sample ON sample.stream_id = request.stream_id AND sample.tier = pool.tier AND request.t_ns >= sample.t_ns
), summed AS (
    SELECT stream_id, tier, count(*) FILTER (band = 'full') AS full_requests,
        count(*) FILTER (band <> 'full') AS other_requests,
        median(ttft_ns) FILTER (band = 'full') AS full_ns, median(ttft_ns) FILTER (band = 'near') AS near_ns,
        median(ttft_ns) FILTER (band <> 'full') AS other_ns, max(fill) FILTER (band <> 'full') AS good_fill,
        median(prompt_tokens) FILTER (band = 'full') AS full_tokens,
            median(prompt_tokens) FILTER (band <> 'full') AS other_tokens,
        max(in_flight) FILTER (band <> 'full') AS good_in_flight, refs_of(stream_id, seq) FILTER (band = 'full') AS refs
    FROM met GROUP BY stream_id, tier
)
SELECT tier, full_ns / 1e6 AS ttft_p50_full_ms, other_ns / 1e6 AS ttft_p50_below_ms, good_fill AS highest_good_fill,
    good_in_flight AS highest_good_in_flight, full_requests, full_requests / (full_requests + other_requests) AS share,
    (full_requests * greatest(full_ns - other_ns, 0))::BIGINT AS touched_ns, refs
FROM summed WHERE full_requests >= $requests AND other_requests >= $requests AND full_ns >= $times * other_ns
    AND coalesce(near_ns, other_ns) <= 0.5 * full_ns AND full_tokens <= 1.5 * other_tokens
"""

RULE: Final = Rule(
    code="CAPACITY_CLIFF",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="Up to a certain fill of the pool requests are fast; in its last percents they are several times slower.",
    check="SELECT t_ns, tier, used_bytes / capacity_bytes FROM events WHERE kind = kind_no('capacity_sampled') ORDER BY t_ns",
    action="lower concurrency to the highest load that was still good",
    unlike="A smooth rise of latency with load.",
    question=_QUESTION,
    needs=(Need((Kind.CAPACITY_SAMPLED,), ("used_bytes",)), Need((Kind.REQUEST_FIRST_TOKEN,))),
    thresholds=(
        Threshold("full", 0.97, "share", "the fill, without what may be evicted, from which a pool counts as full"),
        Threshold("requests", 10, "requests", "how many must have met a full pool, and another"),
        Threshold("times", 3, "ratio", "how many times slower the ones that met a full pool are"),
    ),
)
