"""`READ_FAILURE` as a cause: what the tail waited for were reads that failed; a slow device ends its reads well."""

from typing import Final

from kvtrail_schema.enums import Tier

from kvtrail_collector.facts import Direction, Op, OpEnd
from kvtrail_collector.ledger_parts import TIER_NAMES, Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding

MOST: Final = 0.5
_READS: Final = (Component.STORAGE_READ, Component.COPY, Component.TIER_QUEUE, Component.SUBMIT)
_EVENTS: Final = 5


def find(case: Case, tier: Tier | None) -> Finding | None:
    """Most of the time that the tail's reads from a tier took went into reads that failed; computing anew follows from them."""
    if tier is None:
        return None
    reads = [op for op in case.tail_ops(tier) if op.direction is Direction.LOAD]
    failed = [op for op in reads if op.end is OpEnd.FAILED]
    total_ns, failed_ns = sum(map(_service_ns, reads)), sum(map(_service_ns, failed))
    if not failed_ns or failed_ns < MOST * total_ns:
        return None
    name = TIER_NAMES[tier]
    return Finding(
        explains=(*(Cause(component, name) for component in _READS), Cause(Component.RECOMPUTE_PREFILL, None)),
        evidence={"failed_reads": len(failed), "reads": len(reads), "failed_share_of_time": failed_ns / total_ns},
        events=tuple(case.event(op.stream, op.seq) for op in sorted(failed, key=_service_ns, reverse=True)[:_EVENTS]),
        also=("TIER_SLOW",),
    )


def _service_ns(op: Op) -> int:
    """How long an op was in service."""
    return 0 if op.closing_ns is None else max(op.closing_ns - op.queued_ns - op.queue_ns, 0)


DETECTOR: Final = Detector(
    code="READ_FAILURE",
    components=frozenset(_READS),
    action="disable the tier whose reads fail",
    find=find,
)
