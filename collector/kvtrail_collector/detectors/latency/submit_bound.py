"""`SUBMIT_BOUND`: building and handing over a transfer takes the host longer than the transfer itself."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
SELECT tier, count(*) AS ops, sum(submit_ns) AS touched_ns, avg(submit_ns) / 1e6 AS mean_submit_ms,
    max(submit_ns) / 1e6 AS longest_submit_ms, avg(coalesce(io_ns, 0) + coalesce(copy_ns, 0)) / 1e6 AS mean_transfer_ms,
    sum(submit_ns) / sum(submit_ns + coalesce(io_ns, 0) + coalesce(copy_ns, 0)) AS share, refs_of(stream_id, seq) AS refs
FROM window_ops WHERE submit_ns > 0 AND closed_ns IS NOT NULL GROUP BY stream_id, tier
HAVING sum(submit_ns) > $times * sum(coalesce(io_ns, 0) + coalesce(copy_ns, 0)) AND avg(submit_ns) >= $mean_ms * 1e6
"""

RULE: Final = Rule(
    code="SUBMIT_BOUND",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="The host's work to submit transfers, before the forward pass, is longer than the transfers; the device idles.",
    check="SELECT avg(submit_ns) / 1e6, avg(io_ns) / 1e6 FROM events WHERE kind = kind_no('swap_in_loaded')",
    action="batch descriptors, and submit after the forward pass was launched",
    unlike="`TIER_SLOW`: the transfer itself is long.",
    question=_QUESTION,
    needs=(Need((Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN), ("submit_ns",)),),
    thresholds=(
        Threshold("times", 1, "ratio", "time of submitting over time of io and copy"),
        Threshold("mean_ms", 5, "ms", "the least mean time of submitting"),
    ),
)
