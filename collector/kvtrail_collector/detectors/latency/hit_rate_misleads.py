"""`HIT_RATE_MISLEADS`: the hit rate rose and so did latency, since more of the hits come from slow tiers."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH hit AS (
    SELECT stream_id, req, sum(tokens) AS asked, sum(coalesce(tokens_gpu, 0) + coalesce(tokens_host, 0)) AS fast,
        sum(coalesce(tokens_nvme, 0) + coalesce(tokens_remote, 0)) AS slow,
        sum(coalesce(tokens_nvme, 0)) AS nvme, sum(coalesce(tokens_remote, 0)) AS remote
    FROM window_events WHERE kind = kind_no('lookup_finished') GROUP BY stream_id, req
), request AS (
    SELECT hit.*, first_token_ns - arrived_ns AS ttft_ns, request.seq,
        ntile(3) OVER (PARTITION BY hit.stream_id ORDER BY arrived_ns) AS third
    FROM hit JOIN window_requests AS request ON request.stream_id = hit.stream_id AND request.req = hit.req
    WHERE first_token_ns IS NOT NULL
), part AS (
    SELECT stream_id, third, count(*) AS requests, sum(fast + slow) / greatest(sum(asked), 1) AS hit_rate,
        sum(slow) / greatest(sum(fast + slow), 1) AS slow_share, median(ttft_ns) AS ttft_ns, sum(ttft_ns) AS total_ns,
        sum(nvme) AS nvme, sum(remote) AS remote, refs_of(stream_id, seq) AS refs
    FROM request GROUP BY stream_id, third
)
SELECT CASE WHEN late.remote > late.nvme THEN tier_no('remote') ELSE tier_no('nvme') END AS tier,
    early.hit_rate AS hit_rate_before, late.hit_rate AS hit_rate_after, early.slow_share AS slow_share_before,
    late.slow_share AS slow_share_after, early.ttft_ns / 1e6 AS ttft_p50_before_ms, late.ttft_ns / 1e6 AS ttft_p50_after_ms,
    late.slow_share - early.slow_share AS share, greatest(late.total_ns - late.requests * early.ttft_ns,
        0)::BIGINT AS touched_ns,
    late.refs
FROM part AS early JOIN part AS late USING (stream_id)
WHERE early.third = 1 AND late.third = 3 AND early.requests >= $requests AND late.requests >= $requests
    AND late.hit_rate >= early.hit_rate + $hit_rise AND late.slow_share >= early.slow_share + $slow_rise
    AND late.ttft_ns >= $times * early.ttft_ns
"""

RULE: Final = Rule(
    code="HIT_RATE_MISLEADS",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="A better hit rate is no good news here: the hits that were won come from a slow tier, and requests got slower.",
    check="SELECT sum(tokens_gpu), sum(tokens_host), sum(tokens_nvme), sum(tokens_remote) FROM events "
    "WHERE kind = kind_no('lookup_finished')",
    action="weigh hits by what their tier costs; recompute where that is cheaper",
    unlike="Latency that rose for another reason while the tiers of the hits stayed the same.",
    question=_QUESTION,
    needs=(
        Need((Kind.LOOKUP_FINISHED,), ("tokens_nvme", "tokens_remote")),
        Need((Kind.REQUEST_FIRST_TOKEN,)),
    ),
    thresholds=(
        Threshold("requests", 10, "requests", "requests in the first and in the last third"),
        Threshold("hit_rise", 0.05, "share", "by how much the hit rate rose"),
        Threshold("slow_rise", 0.2, "share", "by how much the slow tiers' share of the hits rose"),
        Threshold("times", 1.5, "ratio", "how many times longer the median time to first token became"),
    ),
)
