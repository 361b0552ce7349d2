"""`PREFETCH_LATE` as a cause: requests come while what was fetched ahead for them is still being read.

They wait for that read, or read the same blocks again themselves, and the prefetch is given up as too late, or ends beside.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from kvtrail_schema.enums import Reason, Tier
from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.tier_load import tier_load
from kvtrail_collector.facts import Direction, Op, RequestFacts
from kvtrail_collector.facts_rows import NO_ID, Interval
from kvtrail_collector.ledger_parts import TIER_NAMES, Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding

MOST: Final = 0.25
GROWTH: Final = 3.0
_READS: Final = (Component.STORAGE_READ, Component.COPY, Component.TIER_QUEUE)
_EVENTS: Final = 5
_MOST_REFERENCE: Final = 400
_ABOUT_NS: Final = 2_000_000_000
_JUST_NS: Final = 50_000_000
_TOO_LATE: Final = np.array([Reason.TOO_LATE, Reason.SUPERSEDED, Reason.DEADLINE], dtype=np.int64)


def find(case: Case, tier: Tier | None) -> Finding | None:
    """Of the reads that the tail waited for, many were begun ahead too late; usually few are."""
    if tier is None or tier_load(case, tier).is_slower:
        return None
    again = _given_up(case) | _overtaken(case)
    if not again and np.all(case.recording.ops.prefetch == NO_ID):
        return None
    late, share = _late(case.tail, tier, again)
    places = case.reference_requests.place
    usual = case.recording.facts(places[:: max(len(places) // _MOST_REFERENCE, 1)].tolist())
    _, usual_share = _late(usual, tier, again)
    if share < MOST or share < GROWTH * usual_share:
        return None
    name = TIER_NAMES[tier]
    return Finding(
        explains=tuple(Cause(component, name) for component in _READS),
        evidence={"late_reads": len(late), "late_share": share, "reference_late_share": usual_share},
        events=tuple(case.event(op.stream, op.seq) for op in late[:_EVENTS]),
        also=("TIER_SLOW",),
    )


def _given_up(case: Case) -> frozenset[tuple[int, int]]:
    """Reads, as (stream, op), of blocks of which a prefetch was given up as too late about then."""
    rows = case.recording.rows
    ends = rows.of_kinds(Kind.PREFETCH_WASTED, Kind.PREFETCH_CANCELLED)
    ends = ends[np.isin(rows.ints["reason"][ends], _TOO_LATE)]
    known: dict[tuple[int, int], list[Interval]] = {}
    columns = (rows.stream[ends], rows.ids["block"][ends], rows.t_ns[ends])
    for stream, block, t_ns in zip(*(column.tolist() for column in columns), strict=True):
        known.setdefault((stream, block), []).append((t_ns - _ABOUT_NS, t_ns + _ABOUT_NS))
    return _own_reads(case, known)


def _overtaken(case: Case) -> frozenset[tuple[int, int]]:
    """Reads, as (stream, op), of blocks that were being fetched ahead at that moment, or began to be just after it."""
    rows = case.recording.rows
    issued, ready = (rows.of_kinds(kind) for kind in (Kind.PREFETCH_ISSUED, Kind.PREFETCH_READY))
    pairs = zip(rows.stream[ready].tolist(), rows.ids["prefetch"][ready].tolist(), strict=True)
    ready_ns = dict(zip(pairs, rows.t_ns[ready].tolist(), strict=True))
    columns = (rows.stream[issued], rows.ids["prefetch"][issued], rows.ids["block"][issued], rows.t_ns[issued])
    known: dict[tuple[int, int], list[Interval]] = {}
    for stream, prefetch, block, t_ns in zip(*(column.tolist() for column in columns), strict=True):
        known.setdefault((stream, block), []).append((t_ns - _JUST_NS, ready_ns.get((stream, prefetch), t_ns + _ABOUT_NS)))
    return _own_reads(case, known)


def _own_reads(case: Case, known: Mapping[tuple[int, int], Sequence[Interval]]) -> frozenset[tuple[int, int]]:
    """Reads on demand, as (stream, op), that were queued within an interval of their block on their own rank."""
    rows = case.recording.rows
    reads = rows.of_kinds(Kind.SWAP_IN_QUEUED)
    reads = reads[rows.ids["prefetch"][reads] == NO_ID]
    columns = (rows.stream[reads], rows.ids["op"][reads], rows.ids["block"][reads], rows.t_ns[reads])
    return frozenset(
        (stream, op)
        for stream, op, block, t_ns in zip(*(column.tolist() for column in columns), strict=True)
        if any(start <= t_ns < end for start, end in known.get((stream, block), ()))
    )


def _late(requests: Sequence[RequestFacts], tier: Tier, again: frozenset[tuple[int, int]]) -> tuple[list[Op], float]:
    """Reads whose prefetch came too late, and their share of all reads of the tier."""
    ops = ((facts, op) for facts in requests for op in (*facts.ops, *facts.shared_ops))
    reads = [(facts, op) for facts, op in ops if op.tier is tier and op.direction is Direction.LOAD]
    late = [op for facts, op in reads if _is_waited_for(facts, op) or (op.stream, op.op) in again]
    return late, len(late) / len(reads) if reads else 0.0


def _is_waited_for(facts: RequestFacts, op: Op) -> bool:
    """Whether a read that was begun ahead ended after its request had come."""
    return op.prefetch is not None and (op.closing_ns or facts.end_ns) > facts.arrived_ns


DETECTOR: Final = Detector(
    code="PREFETCH_LATE",
    components=frozenset(_READS),
    action="issue prefetches earlier, or not at all",
    find=find,
)
