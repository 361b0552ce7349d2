"""`PREFETCH_WASTE` as a cause: loads wait for their turn behind prefetches that nobody used; a queue of demand is not that."""

from typing import Final

from kvtrail_schema.enums import Tier

from kvtrail_collector.blame_accounts import WorkKind
from kvtrail_collector.detectors.tier_load import tier_load
from kvtrail_collector.ledger_parts import TIER_NAMES, Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding

MOST: Final = 0.5
_EVENTS: Final = 5


def find(case: Case, tier: Tier | None) -> Finding | None:
    """Most of the waiting at a tier that is as fast as ever is charged to prefetches that ended wasted."""
    if tier is None or tier_load(case, tier).is_slower:
        return None
    blamed = case.blame.blamed(case.tail_ops(tier))
    wasted = [row for row in case.blame.rows(blamed) if row.kind == WorkKind.PREFETCH_WASTED.value]
    share = sum(row.share for row in wasted)
    if share < MOST:
        return None
    worst = blamed.worst(_EVENTS, only_prefetches=True)
    evidence: dict[str, float | int | str] = {
        "waited_ns": blamed.total_ns,
        "wasted_share": share,
        "blamed_tenant": wasted[0].tenant or "",
    }
    return Finding(
        explains=(Cause(Component.TIER_QUEUE, TIER_NAMES[tier]),),
        evidence=evidence,
        events=tuple(case.event(op.stream, op.seq) for op in worst),
        tenant=wasted[0].tenant if wasted[0].share >= MOST else None,
        also=("TIER_QUEUE",),
    )


DETECTOR: Final = Detector(
    code="PREFETCH_WASTE",
    components=frozenset({Component.TIER_QUEUE}),
    action="stop prefetch, or shrink its window",
    find=find,
)
