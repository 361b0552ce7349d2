"""Prefetches: one row per block of a prefetch, from its issue to its one outcome."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.projections.projection import numbers

_USED, _WASTED, _CANCELLED = Kind.PREFETCH_USED.value, Kind.PREFETCH_WASTED.value, Kind.PREFETCH_CANCELLED.value
_ENDS: Final = numbers(Kind.PREFETCH_USED, Kind.PREFETCH_WASTED, Kind.PREFETCH_CANCELLED)
_ISSUED: Final = f"FILTER (kind = {Kind.PREFETCH_ISSUED.value})"
_FIRST_END: Final = f"struct_pack(t := t_ns, k := kind)) FILTER (kind IN ({_ENDS}))"
_ALL: Final = numbers(*(kind for kind in Kind if kind.name.startswith("PREFETCH_")))

# Of several outcomes, which should not be, the first in time counts.
PREFETCHES: Final = f"""
SELECT stream_id, prefetch, block,
    min(req) AS req, min(src) AS src, min(dst) AS dst, max("bytes") {_ISSUED} AS "bytes",
    min(t_ns) {_ISSUED} AS issued_ns, min(deadline_ns) {_ISSUED} AS deadline_ns,
    min(t_ns) FILTER (kind = {Kind.PREFETCH_COMPLETED.value}) AS completed_ns,
    min(t_ns) FILTER (kind = {Kind.PREFETCH_READY.value}) AS ready_ns,
    min(t_ns) FILTER (kind IN ({_ENDS})) AS ended_ns,
    CASE arg_min(kind, {_FIRST_END} WHEN {_USED} THEN 'used' WHEN {_WASTED} THEN 'wasted' WHEN {_CANCELLED} THEN 'cancelled'
        ELSE CASE WHEN count(*) {_ISSUED} = 0 AND bool_or(kind = {Kind.PREFETCH_SKIPPED.value}) THEN 'skipped' ELSE 'open' END
        END AS outcome,
    coalesce(arg_min(reason, {_FIRST_END}, max(reason) FILTER (kind = {Kind.PREFETCH_SKIPPED.value})) AS reason,
    bool_or(kind = {Kind.PREFETCH_DEADLINE_MISSED.value}) AS is_late
FROM events WHERE kind IN ({_ALL}) AND prefetch IS NOT NULL GROUP BY stream_id, prefetch, block
"""  # noqa: S608  # constants of ours
