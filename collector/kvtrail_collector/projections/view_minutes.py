"""What happened in each minute of wall time: per tier from ops, per tenant (namespace) from requests."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.projections.ops import OpOutcome

_MINUTE: Final = "make_timestamp((({}) + wall_ns - monotonic_ns) // 60000000000 * 60000000)"
_STREAMS: Final = "JOIN streams USING (stream_id) JOIN stream_marks USING (stream_id)"

TIER_MINUTES: Final = f"""
SELECT engine, rank, tier, {_MINUTE.format("closed_ns")} AS minute, count(*) AS ops,
    count(*) FILTER (outcome = {OpOutcome.FAILED.value}) AS failed,
    least(sum("bytes"), 18446744073709551615)::UBIGINT AS "bytes",
    quantile_disc(started_ns - queued_ns, 0.5) AS wait_p50_ns, quantile_disc(started_ns - queued_ns, 0.99) AS wait_p99_ns,
    quantile_disc(closed_ns - started_ns, 0.5) AS service_p50_ns, quantile_disc(closed_ns - started_ns, 0.99) AS service_p99_ns
FROM ops {_STREAMS} WHERE closed_ns IS NOT NULL GROUP BY ALL
"""  # noqa: S608  # constants of ours

TENANT_MINUTES: Final = f"""
SELECT engine, ns, {_MINUTE.format("arrived_ns")} AS minute, count(*) AS requests,
    count(*) FILTER (end_kind = {Kind.REQUEST_FINISHED.value}) AS finished,
    count(*) FILTER (end_kind = {Kind.REQUEST_CANCELLED.value}) AS cancelled,
    count(*) FILTER (end_kind = {Kind.REQUEST_REJECTED.value}) AS rejected,
    sum(prompt_tokens)::UBIGINT AS prompt_tokens, sum(output_tokens)::UBIGINT AS output_tokens,
    quantile_disc(first_token_ns - arrived_ns, 0.5) AS ttft_p50_ns,
    quantile_disc(first_token_ns - arrived_ns, 0.99) AS ttft_p99_ns
FROM requests {_STREAMS} WHERE arrived_ns IS NOT NULL GROUP BY ALL
"""  # noqa: S608  # constants of ours
