"""`TIER_SLOW`: reads of a tier take longer per byte than before, and its queue is no better explanation."""

from typing import Final

from kvtrail_schema.enums import Tier

from kvtrail_collector.detectors.tier_load import tier_load
from kvtrail_collector.ledger_parts import TIER_NAMES, Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding

_OWN: Final = (Component.STORAGE_READ, Component.COPY, Component.ALLOC)
_EVENTS: Final = 5


def find(case: Case, tier: Tier | None) -> Finding | None:
    """The device itself got slower; a longer queue at it is then a consequence, and is explained too."""
    if tier is None or not (load := tier_load(case, tier)).is_slower:
        return None
    name = TIER_NAMES[tier]
    queue = Cause(Component.TIER_QUEUE, name)
    slowest = sorted(case.tail_ops(tier), key=lambda op: -(op.io_ns + op.copy_ns))[:_EVENTS]
    evidence: dict[str, float | int | str] = {
        "read_ns_per_kib": load.read_ns_per_kib,
        "reference_read_ns_per_kib": load.reference_read_ns_per_kib,
        "read_cost_ratio": load.service_ratio,
        "load_ratio": load.load_ratio,
        "reads": load.reads,
        "reference_reads": load.reference_reads,
        "queue_excess_ms": case.excess_ns(queue) / 1e6,
    }
    return Finding(
        explains=(*(Cause(component, name) for component in _OWN), queue),
        evidence=evidence,
        events=tuple(case.event(op.stream, op.seq) for op in slowest),
        also=("TIER_QUEUE",) if case.excess_ns(queue) > 0 else (),
    )


DETECTOR: Final = Detector(
    code="TIER_SLOW",
    components=frozenset({*_OWN, Component.TIER_QUEUE}),
    action="recompute instead of reading from this tier",
    find=find,
)
