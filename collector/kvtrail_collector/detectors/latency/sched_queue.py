"""`SCHED_QUEUE`, seen in single requests: one waited long while the steps' tokens went to another."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH loaded AS (
    SELECT stream_id, req, max(closed_ns) AS closed_ns FROM window_ops WHERE req IS NOT NULL AND is_load GROUP BY ALL
), chunk AS (
    SELECT stream_id, req, t_ns, tokens FROM window_events WHERE kind = kind_no('prefill_chunk')
), first_chunk AS (SELECT stream_id, req, min(t_ns) AS t_ns FROM chunk GROUP BY ALL
), victim AS (
    SELECT request.stream_id, request.req, request.ns, request.seq, request.label,
        greatest(arrived_ns, loaded.closed_ns) AS since_ns,
        coalesce(least(admitted_ns, first_chunk.t_ns, first_token_ns), ended_ns, stream.last_ns) AS until_ns
    FROM window_requests AS request JOIN window_streams AS stream USING (stream_id)
    LEFT JOIN loaded ON loaded.stream_id = request.stream_id AND loaded.req = request.req
    LEFT JOIN first_chunk ON first_chunk.stream_id = request.stream_id AND first_chunk.req = request.req
    WHERE arrived_ns IS NOT NULL
), longest AS (
    SELECT *, until_ns - since_ns AS waited_ns FROM victim WHERE until_ns - since_ns >= $wait_s * 1e9
    ORDER BY waited_ns DESC LIMIT 20
), taken AS (
    SELECT longest.stream_id, longest.req AS victim, longest.waited_ns, longest.seq, chunk.req AS taker, sum(tokens) AS tokens,
        max(t_ns) - min(t_ns) AS over_ns
    FROM longest JOIN chunk ON chunk.stream_id = longest.stream_id AND chunk.req <> longest.req
        AND chunk.t_ns > longest.since_ns AND chunk.t_ns <= longest.until_ns
    GROUP BY ALL
), led AS (
    SELECT stream_id, victim, any_value(waited_ns) AS waited_ns, any_value(seq) AS seq, arg_max(taker, tokens) AS taker,
        max(tokens) / sum(tokens) AS share, max(tokens) AS tokens, arg_max(over_ns, tokens) AS over_ns
    FROM taken GROUP BY stream_id, victim
)
SELECT taker_request.ns, coalesce(any_value(taker_request.label), hex16(led.taker)) AS taken_by,
    max(taker_request.prompt_tokens) AS taker_prompt_tokens, max(led.share) AS share, max(led.tokens) AS taker_tokens,
    count(*) AS requests_behind, max(waited_ns) / 1e6 AS longest_wait_ms, sum(waited_ns) AS touched_ns,
    refs_of(led.stream_id, led.seq) AS refs
FROM led JOIN window_requests AS taker_request ON taker_request.stream_id = led.stream_id AND taker_request.req = led.taker
WHERE led.share >= $taker_share AND led.over_ns >= $taker_share * 0.5 * waited_ns
GROUP BY led.stream_id, led.taker, taker_request.ns
"""

RULE: Final = Rule(
    code="SCHED_QUEUE",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="Requests stood ready and were not scheduled, while the token budget of the steps went to one other request.",
    check="SELECT req, sum(tokens) FROM events WHERE kind = kind_no('prefill_chunk') GROUP BY req ORDER BY 2 DESC LIMIT 5",
    action="lower the limit for long prompts, or the share of a step that one request may take",
    unlike="`ENGINE_STALL`: the same wait, and no step runs at all. Waits for data are taken out first.",
    question=_QUESTION,
    needs=(Need((Kind.REQUEST_ARRIVED,)), Need((Kind.PREFILL_CHUNK,))),
    thresholds=(
        Threshold("wait_s", 10, "s", "how long a request must have waited, loads not counted"),
        Threshold("taker_share", 0.5, "share", "what one other request must have taken of the tokens meanwhile"),
    ),
)
