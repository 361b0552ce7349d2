"""`ACCOUNTING_INVALID`: figures that cannot be: a part larger than its whole, a negative counter, loads that save nothing."""

from collections.abc import Mapping
from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Row, Rule, Threshold
from kvtrail_collector.detectors.scene import Scene

_LOADED_TOKENS: Final = Need((Kind.SWAP_IN_LOADED,), ("tokens",))
_PARTS: Final = """
WITH op AS (
    SELECT *, coalesce(queue_ns, 0)::HUGEINT + coalesce(alloc_ns, 0) + coalesce(submit_ns, 0) + coalesce(io_ns, 0)
        + coalesce(copy_ns, 0) + coalesce(sync_ns, 0) AS parts_ns
    FROM window_ops WHERE queued_ns IS NOT NULL AND closed_ns IS NOT NULL
)
SELECT tier, count(*) AS ops, max(parts_ns - (closed_ns - queued_ns)) / 1e6 AS most_over_ms,
    'parts of a transfer exceed its span' AS what, refs_of(stream_id, seq) AS refs
FROM op WHERE parts_ns > closed_ns - queued_ns + greatest($slack_ms * 1e6, 0.02 * (closed_ns - queued_ns))
    GROUP BY stream_id, tier
"""
_TOKENS: Final = """
SELECT count(*) AS lookups, max(tokens) AS asked_tokens, 'lookups found more than they asked for' AS what,
    arg_max(coalesce(tokens_gpu, 0) + coalesce(tokens_host, 0) + coalesce(tokens_nvme, 0) + coalesce(tokens_remote, 0), tokens)
        AS found_tokens, refs_of(stream_id, seq) AS refs
FROM window_events WHERE kind = kind_no('lookup_finished')
    AND coalesce(tokens_gpu, 0) + coalesce(tokens_host, 0) + coalesce(tokens_nvme, 0) + coalesce(tokens_remote, 0) > tokens
GROUP BY stream_id
"""
_COUNTERS: Final = """
SELECT "text" AS counter, count(*) AS samples, min("value") AS lowest, 'a counter is negative' AS what, refs_of(stream_id,
    seq) AS refs
FROM window_events WHERE kind = kind_no('counter_sampled') AND "value" < 0 GROUP BY stream_id, "text"
"""
_STEPS: Final = """
SELECT count(*) AS steps, max(coalesce(prefill_tokens, 0) + coalesce(decode_tokens, 0)) AS of_which, max(tokens) AS tokens,
    'a step has more prefill and decode tokens than tokens' AS what, refs_of(stream_id, seq) AS refs
FROM window_events WHERE kind = kind_no('step_finished') AND coalesce(prefill_tokens, 0) + coalesce(decode_tokens, 0) > tokens
GROUP BY stream_id
"""

_TWICE: Final = """
WITH prompt AS (
    SELECT stream_id, req, max(tokens) AS tokens FROM window_events WHERE kind = kind_no('request_arrived') GROUP BY ALL
), computed AS (
    SELECT stream_id, req, sum(tokens) AS tokens, min(seq) AS seq FROM window_events
    WHERE kind = kind_no('prefill_chunk') AND reason = reason_no('new') GROUP BY ALL
), loaded AS (
    SELECT stream_id, req, sum(tokens) AS tokens FROM window_ops
    WHERE is_load AND dst = tier_no('gpu') AND failed_rows = 0 AND closed_rows > 0 AND tokens > 0 GROUP BY ALL
), own AS (
    SELECT loaded.*, coalesce(computed.tokens, 0) >= prompt.tokens AND loaded.tokens >= 0.1 * prompt.tokens AS is_whole, seq
    FROM loaded JOIN prompt USING (stream_id, req) LEFT JOIN computed USING (stream_id, req)
)
SELECT count(*) FILTER (is_whole) AS requests, sum(tokens) FILTER (is_whole) AS tokens_loaded,
    'loaded, and computed all the same' AS what, refs_of(stream_id, seq) FILTER (is_whole) AS refs
FROM own GROUP BY stream_id HAVING count(*) FILTER (is_whole) >= $requests AND 2 * count(*) FILTER (is_whole) >= count(*)
"""


def _find(scene: Scene, settings: Mapping[str, float]) -> list[Row]:
    """Every sort of impossible figure, a row each."""
    asked = [_PARTS, _TOKENS, _COUNTERS, _STEPS, *([_TWICE] if scene.has(_LOADED_TOKENS) else [])]
    return [row for question in asked for row in scene.ask(question, settings)]


RULE: Final = Rule(
    code="ACCOUNTING_INVALID",
    family=Family.FIGURES,
    basis=Basis.INVARIANT,
    means="The producer's arithmetic is wrong. kvtrail clamps such figures and goes on; do not build on them.",
    check="SELECT req, tokens, tokens_gpu, tokens_host, tokens_nvme, tokens_remote FROM events "
    "WHERE kind = kind_no('lookup_finished') ORDER BY t_ns",
    action="a bug of the producer: look at rollbacks and reschedules, where counts are taken twice",
    unlike="Clocks of different threads that differ by less than the slack.",
    find=_find,
    triggers=(Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN, Kind.LOOKUP_FINISHED, Kind.COUNTER_SAMPLED, Kind.STEP_FINISHED),
    thresholds=(
        Threshold("slack_ms", 2, "ms", "by which parts may exceed their span, beside 2 %"),
        Threshold("requests", 5, "requests", "of which all was computed though a part was loaded"),
    ),
)
