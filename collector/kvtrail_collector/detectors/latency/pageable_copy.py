"""`PAGEABLE_COPY`: copies have a fast and a slow mode, and the slow one is memory that is not pinned."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH op AS (
    SELECT *, coalesce(io_ns, 0) + coalesce(copy_ns, 0) AS moved_ns,
        (coalesce(io_ns, 0) + coalesce(copy_ns, 0)) / greatest(coalesce(bytes, 1), 1) AS ns_per_byte
    FROM window_ops WHERE pinned IS NOT NULL AND closed_ns IS NOT NULL AND coalesce(io_ns, copy_ns) IS NOT NULL
)
SELECT tier, count(*) FILTER (NOT pinned) AS pageable, count(*) AS copies, count(*) FILTER (NOT pinned) / count(*) AS share,
    median(moved_ns) FILTER (NOT pinned) / 1e6 AS pageable_p50_ms, median(moved_ns) FILTER (pinned) / 1e6 AS pinned_p50_ms,
    median(ns_per_byte) FILTER (NOT pinned) / median(ns_per_byte) FILTER (pinned) AS times_slower,
    sum(moved_ns) FILTER (NOT pinned) AS touched_ns, refs_of(stream_id, seq) FILTER (NOT pinned) AS refs
FROM op GROUP BY stream_id, tier
HAVING count(*) FILTER (NOT pinned) >= $copies AND count(*) FILTER (pinned) >= $copies
    AND quantile_cont(ns_per_byte, 0.25) FILTER (NOT pinned) >= $times * median(ns_per_byte) FILTER (pinned)
"""

RULE: Final = Rule(
    code="PAGEABLE_COPY",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="A part of the host buffers is not pinned: its copies go over a bounce buffer and take several times longer.",
    check="SELECT pinned, count(*), avg(copy_ns / bytes) FROM events WHERE bytes > 0 GROUP BY pinned",
    action="look for a registration that failed without an error, and fix it",
    unlike="A slow link: pinned copies are slow as well.",
    question=_QUESTION,
    needs=(Need((Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN), ("pinned",)),),
    thresholds=(
        Threshold("copies", 5, "copies", "copies of each sort that must have been seen"),
        Threshold("times", 2, "ratio", "how many times longer per byte the faster pageable copies take"),
    ),
)
