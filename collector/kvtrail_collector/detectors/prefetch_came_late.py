"""`PREFETCH_LATE` as a cause: requests come while what was fetched ahead for them is still being read."""

from collections.abc import Sequence
from typing import Final

from kvtrail_schema.enums import Tier

from kvtrail_collector.detectors.tier_load import tier_load
from kvtrail_collector.facts import Op, RequestFacts
from kvtrail_collector.ledger_parts import TIER_NAMES, Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding

MOST: Final = 0.5
GROWTH: Final = 2.0
_READS: Final = (Component.STORAGE_READ, Component.COPY, Component.TIER_QUEUE)
_EVENTS: Final = 5
_MOST_REFERENCE: Final = 400


def find(case: Case, tier: Tier | None) -> Finding | None:
    """Most reads that the tail waited for were begun ahead, and ended after their request had come; usually they do not."""
    if tier is None or tier_load(case, tier).is_slower:
        return None
    late, share = _late(case.tail, tier)
    places = case.reference_requests.place
    usual = [case.recording.requests[place] for place in places[:: max(len(places) // _MOST_REFERENCE, 1)].tolist()]
    _, usual_share = _late(usual, tier)
    if share < MOST or share < GROWTH * usual_share:
        return None
    name = TIER_NAMES[tier]
    return Finding(
        explains=tuple(Cause(component, name) for component in _READS),
        evidence={"late_reads": len(late), "late_share": share, "reference_late_share": usual_share},
        events=tuple(case.event(op.stream, op.seq) for op in late[:_EVENTS]),
        also=("TIER_SLOW",),
    )


def _late(requests: Sequence[RequestFacts], tier: Tier) -> tuple[list[Op], float]:
    """Reads that were begun ahead and ended after their request had come, and their share of all reads of the tier."""
    reads = [(facts, op) for facts in requests for op in (*facts.ops, *facts.shared_ops) if op.tier is tier]
    late = [op for facts, op in reads if op.prefetch is not None and (op.closing_ns or facts.end_ns) > facts.arrived_ns]
    return late, len(late) / len(reads) if reads else 0.0


DETECTOR: Final = Detector(
    code="PREFETCH_LATE",
    components=frozenset(_READS),
    action="issue prefetches earlier, or not at all",
    find=find,
)
