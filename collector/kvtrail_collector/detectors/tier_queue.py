"""`TIER_QUEUE`: loads wait for their turn at a tier that is as fast as ever; blame says behind whose work."""

from typing import Final

from kvtrail_schema.enums import Tier

from kvtrail_collector.detectors.hits_by_tier import has_more_by_filling
from kvtrail_collector.detectors.tier_load import tier_load
from kvtrail_collector.ledger_parts import TIER_NAMES, Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding

_EVENTS: Final = 5
_MOST: Final = 0.5


def find(case: Case, tier: Tier | None) -> Finding | None:
    """The queue of a tier grew; not because the device got slower, nor since more is found there while it fills."""
    if tier is None or (load := tier_load(case, tier)).is_slower or has_more_by_filling(case, tier, load.work_ratio):
        return None
    blamed = case.blame.blamed(case.tail_ops(tier))
    rows = case.blame.rows(blamed)
    if not rows:
        return None
    evidence: dict[str, float | int | str] = {
        "waited_ns": blamed.total_ns,
        "blamed_kind": rows[0].kind,
        "blamed_tenant": rows[0].tenant or "",
        "blamed_share": rows[0].share,
        "read_cost_ratio": load.service_ratio,
        "load_ratio": load.load_ratio,
    }
    worst = blamed.worst(_EVENTS)
    return Finding(
        explains=(Cause(Component.TIER_QUEUE, TIER_NAMES[tier]),),
        evidence=evidence,
        events=tuple(case.event(op.stream, op.seq) for op in worst),
        tenant=rows[0].tenant if rows[0].share >= _MOST else None,
    )


DETECTOR: Final = Detector(
    code="TIER_QUEUE",
    components=frozenset({Component.TIER_QUEUE}),
    action="lower the rate of the blamed kind of work on this tier",
    find=find,
)
