"""Did a tier get slower, or did it get more to do? The figures that tell `TIER_SLOW` from `TIER_QUEUE`."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from kvtrail_schema.enums import Tier

from kvtrail_collector.attribution_shapes import Window
from kvtrail_collector.facts_ops import OpColumns
from kvtrail_collector.facts_rows import BoolArray
from kvtrail_collector.verdicts_case import Case

SLOWER_FROM: Final = 1.25
MIN_OPS: Final = 5


@dataclass(frozen=True, slots=True)
class TierLoad:
    """A tier in the window against the reference: reads in ns per KiB, and work per second; ratios are 0 where unknown."""

    read_ns_per_kib: float
    reference_read_ns_per_kib: float
    service_ratio: float
    load_ratio: float
    reads: int
    reference_reads: int

    @property
    def is_slower(self) -> bool:
        """Whether the device is what changed: each read takes longer, and that grew at least as much as the demand."""
        return self.service_ratio >= SLOWER_FROM and self.service_ratio >= self.load_ratio


def tier_load(case: Case, tier: Tier) -> TierLoad:
    """Compare a tier's service in the two windows of a case."""
    ops = case.recording.ops
    here, there = case.ops_queued_in(case.window, tier), case.ops_queued_in(case.reference, tier)
    own, reads = _read_cost(ops, here)
    other, reference_reads = _read_cost(ops, there)
    known = min(reads, reference_reads) >= MIN_OPS and other > 0
    service = own / other if known else 0.0
    work, reference_work = _work_share(ops, here, case.window), _work_share(ops, there, case.reference)
    load = work / reference_work / service if known and reference_work > 0 and service > 0 else 0.0
    return TierLoad(own, other, service, load, reads, reference_reads)


def _read_cost(ops: OpColumns, chosen: BoolArray) -> tuple[float, int]:
    """The median of device time per KiB of completed reads, and their number; ops that state no size count as one KiB."""
    done = chosen & (ops.load == 1) & (ops.end == 1)
    kib = np.where(ops.bytes[done] > 0, ops.bytes[done] / 1024, 1.0)
    return (float(np.median(ops.service_ns[done] / kib)) if done.any() else 0.0), int(done.sum())


def _work_share(ops: OpColumns, chosen: BoolArray, window: Window) -> float:
    """The device time that was asked for, per second of the window."""
    length = max(window.end_ns - window.start_ns, 1)
    return float(ops.service_ns[chosen].sum() / length)
