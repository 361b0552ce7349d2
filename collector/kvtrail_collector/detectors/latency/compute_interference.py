"""`COMPUTE_INTERFERENCE`: decode steps are long exactly while others prefill, and no tier moved a byte meanwhile."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH step AS (
    SELECT *, finished_ns - started_ns AS length_ns, coalesce(prefill_tokens, 0) > 0 AS is_mixed FROM window_steps
    WHERE finished_ns > started_ns AND coalesce(decode_tokens, 1) > 0
), mixed AS (
    SELECT stream_id, count(*) AS mixed_steps, median(length_ns) AS mixed_ns, min(started_ns) AS start_ns,
        max(finished_ns) AS end_ns, refs_of(stream_id, seq) AS refs, sum(length_ns) AS total_ns, max(prefill_tokens) AS prefill
    FROM step WHERE is_mixed GROUP BY stream_id
), pure AS (SELECT stream_id, count(*) AS pure_steps, median(length_ns) AS pure_ns FROM step WHERE NOT is_mixed
    GROUP BY stream_id
), moved AS (
    SELECT mixed.stream_id, sum(op.bytes) AS bytes, count(op.op) AS ops FROM mixed JOIN window_ops AS op
    ON op.stream_id = mixed.stream_id AND op.closed_ns >= mixed.start_ns AND coalesce(op.queued_ns,
        op.closed_ns) <= mixed.end_ns
    GROUP BY ALL
)
SELECT mixed_ns / 1e6 AS step_with_prefill_ms, pure_ns / 1e6 AS pure_step_ms, mixed_ns / pure_ns AS ratio, mixed_steps,
    prefill AS most_prefill_tokens, 0 AS tier_bytes, refs,
    greatest(total_ns - mixed_steps * pure_ns, 0)::BIGINT AS touched_ns, 1 - pure_ns / mixed_ns AS share
FROM mixed JOIN pure USING (stream_id) LEFT JOIN moved USING (stream_id)
WHERE coalesce(moved.ops, 0) = 0 AND mixed_steps >= $steps AND pure_steps >= $steps
    AND mixed_ns >= $times * pure_ns AND mixed_ns >= $step_ms * 1e6
"""

RULE: Final = Rule(
    code="COMPUTE_INTERFERENCE",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="Tokens come slowly because others' prompts are computed in the same steps. No tier is involved.",
    check="SELECT prefill_tokens > 0 AS mixed, count(*) FROM events WHERE kind = kind_no('step_finished') GROUP BY mixed",
    action="compute prompts in smaller chunks",
    unlike="Traffic on a tier in the same time: then copies may be what slows the steps.",
    question=_QUESTION,
    needs=(Need((Kind.STEP_STARTED,)), Need((Kind.STEP_FINISHED,), ("prefill_tokens",))),
    thresholds=(
        Threshold("steps", 10, "steps", "how many steps with and without prefill there must be"),
        Threshold("times", 5, "ratio", "how many times longer a step with prefill is"),
        Threshold("step_ms", 100, "ms", "and how long at least"),
    ),
)
