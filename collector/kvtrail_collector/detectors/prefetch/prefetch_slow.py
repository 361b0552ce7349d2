"""`PREFETCH_SLOW`: prefetches take seconds; says which part of them does."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH op AS (
    SELECT *, coalesce(alloc_ns, 0) AS alloc, coalesce(io_ns, 0) AS io, coalesce(copy_ns, 0) AS copied FROM window_ops
    WHERE prefetch IS NOT NULL AND is_load AND closed_ns IS NOT NULL
), summed AS (
    SELECT stream_id, tier, count(*) AS loads, sum(alloc) AS alloc, sum(io) AS io, sum(copied) AS copied, sum(bytes) AS bytes,
        sum(alloc + io + copied) AS total, refs_of(stream_id, seq) AS refs
    FROM op GROUP BY stream_id, tier
)
SELECT tier, loads, CASE greatest(alloc, io, copied) WHEN copied THEN 'copy' WHEN io THEN 'io' ELSE 'alloc' END AS largest_part,
    copied / total AS copy_share, io / total AS io_share, alloc / total AS alloc_share, total / loads / 1e6 AS mean_ms,
    bytes / total AS gb_per_s, greatest(alloc, io, copied) / total AS share, total AS touched_ns, refs
FROM summed WHERE loads >= $loads AND total / loads >= $mean_s * 1e9
"""

RULE: Final = Rule(
    code="PREFETCH_SLOW",
    family=Family.PREFETCH,
    basis=Basis.MECHANISM,
    means="A prefetch takes longer than most requests can wait. The shares say whether to look at memory, device or allocator.",
    check="SELECT alloc_ns / 1e6, io_ns / 1e6, copy_ns / 1e6, bytes FROM events "
    "WHERE kind = kind_no('swap_in_loaded') AND prefetch IS NOT NULL ORDER BY t_ns",
    action="see the largest part: host memory for copy, the device for io, the pool for alloc",
    unlike="Prefetches that wait long in a queue and are then quick.",
    question=_QUESTION,
    needs=(Need((Kind.SWAP_IN_LOADED,), ("io_ns", "copy_ns", "alloc_ns")), Need((Kind.SWAP_IN_LOADED,), ("prefetch",))),
    thresholds=(
        Threshold("loads", 3, "loads", "how many loads of prefetches there must be"),
        Threshold("mean_s", 3, "s", "how long they take on average"),
    ),
)
