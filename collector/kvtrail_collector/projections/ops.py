"""One row per op: one hop of one transfer, with its times, its parts, its bytes and how it ended."""

from enum import IntEnum
from string import Template
from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.projections.projection import Projection, in_kinds, numbers


class OpOutcome(IntEnum):
    """How an op ended. Of several the largest counts: one failed block makes a failed op."""

    OPEN = 0
    SKIPPED = 1
    DONE = 2
    FAILED = 3


_QUEUED_KINDS: Final = (Kind.SWAP_OUT_QUEUED, Kind.SWAP_IN_QUEUED)
_STARTED_KINDS: Final = (Kind.SWAP_OUT_STARTED, Kind.SWAP_IN_STARTED)
_DONE_KINDS: Final = (Kind.SWAP_OUT_WRITTEN, Kind.SWAP_IN_LOADED)
_FAILED_KINDS: Final = (Kind.SWAP_OUT_FAILED, Kind.SWAP_IN_FAILED)
_SKIPPED_KINDS: Final = (Kind.SWAP_OUT_SKIPPED,)
_QUEUED: Final = numbers(*_QUEUED_KINDS)
_STARTED: Final = numbers(*_STARTED_KINDS)
_DONE: Final = numbers(*_DONE_KINDS)
_FAILED: Final = numbers(*_FAILED_KINDS)
_SKIPPED: Final = numbers(*_SKIPPED_KINDS)
_CLOSED: Final = f"{_DONE}, {_FAILED}, {_SKIPPED}"
_ALL: Final = f"{_QUEUED}, {_STARTED}, {_CLOSED}"
_PARTS: Final = ("queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns")
_LEAST: Final = ("req", "prefetch", "src", "dst", "queued_ns", "started_ns")
_GREATEST: Final = ("tier", "closed_ns", *_PARTS, "outcome")
_MOST_BYTES: Final = 2**64 - 1

# Sums saturate, so that no batch can make a commit overflow. The parts stand on one row of an op only, so max finds them.
# An op is closed when its last block is.
_MERGE: Final = f"""
MERGE INTO ops AS old USING (
    SELECT stream_id, op,
        min(req) AS req, min(prefetch) AS prefetch, min(src) AS src, min(dst) AS dst, max(greatest(src, dst)) AS tier,
        min(t_ns) FILTER (kind IN ({_QUEUED})) AS queued_ns,
        min(t_ns) FILTER (kind IN ({_STARTED})) AS started_ns,
        max(t_ns) FILTER (kind IN ({_CLOSED})) AS closed_ns,
        {", ".join(f"max({part}) AS {part}" for part in _PARTS)},
        least(coalesce(sum("bytes") FILTER (kind IN ({_DONE})), 0), {_MOST_BYTES})::UBIGINT AS "bytes",
        max(CASE WHEN kind IN ({_FAILED}) THEN {OpOutcome.FAILED.value} WHEN kind IN ({_DONE}) THEN {OpOutcome.DONE.value}
            WHEN kind IN ({_SKIPPED}) THEN {OpOutcome.SKIPPED.value} ELSE {OpOutcome.OPEN.value} END)::UTINYINT AS outcome
    FROM $source WHERE {in_kinds(_ALL)} AND op + 0 IS NOT NULL GROUP BY stream_id, op
) AS new ON old.stream_id = new.stream_id AND old.op = new.op
WHEN MATCHED THEN UPDATE SET
    {", ".join(f"{name} = least(old.{name}, new.{name})" for name in _LEAST)},
    {", ".join(f"{name} = greatest(old.{name}, new.{name})" for name in _GREATEST)},
    "bytes" = least(old."bytes"::HUGEINT + new."bytes", {_MOST_BYTES})::UBIGINT
WHEN NOT MATCHED THEN INSERT BY NAME
"""  # noqa: S608  # constants of ours

OPS_PROJECTION: Final = Projection(
    "ops",
    "op",
    Template(_MERGE),
    kinds=(*_QUEUED_KINDS, *_STARTED_KINDS, *_DONE_KINDS, *_FAILED_KINDS, *_SKIPPED_KINDS),
    columns=("op", "req", "prefetch", "src", "dst", "t_ns", *_PARTS, "bytes"),
)
