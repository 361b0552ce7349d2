"""Did a tier get slower, or did it get more to do? The figures that tell `TIER_SLOW` from `TIER_QUEUE`."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from kvtrail_schema.enums import Tier

from kvtrail_collector.attribution_shapes import Window
from kvtrail_collector.detectors.victim_ranks import victim_streams
from kvtrail_collector.facts_ops import OpColumns
from kvtrail_collector.facts_rows import BoolArray, IntArray
from kvtrail_collector.verdicts_case import Case

SLOWER_FROM: Final = 1.25
MIN_OPS: Final = 5


@dataclass(frozen=True, slots=True)
class TierLoad:
    """A tier in the window against the reference: reads, and work per second; ratios are 0 where unknown."""

    read_ns_per_kib: float
    reference_read_ns_per_kib: float
    service_ratio: float
    load_ratio: float
    work_ratio: float
    """How many times the device time of the reference was asked for, per second: more work, slower work, or both."""
    reads: int
    reference_reads: int

    @property
    def is_slower(self) -> bool:
        """Whether the device is what changed: each read takes longer, and that grew at least as much as the demand."""
        return self.service_ratio >= SLOWER_FROM and self.service_ratio >= self.load_ratio


def tier_load(case: Case, tier: Tier) -> TierLoad:
    """Compare a tier's service in the two windows of a case.

    How long reads take is looked at on the ranks that the tail waited on. Work is that of all ranks, since several on one
    host may share a device.
    """
    ops = case.recording.ops
    here, there = case.ops_queued_in(case.window, tier), case.ops_queued_in(case.reference, tier)
    waited_on = victim_streams(case)[ops.stream]
    own, other = _reads(ops, here & waited_on), _reads(ops, there & waited_on)
    service = _service_ratio(own, other)
    work, reference_work = _work_share(ops, here, case.window), _work_share(ops, there, case.reference)
    grown = work / reference_work if reference_work > 0 else 0.0
    load = grown / service if service > 0 else 0.0
    return TierLoad(own.ns_per_kib, other.ns_per_kib, service, load, grown, len(own.service_ns), len(other.service_ns))


@dataclass(frozen=True, slots=True)
class _Reads:
    """Completed reads: how long each took the device, and how large it was."""

    service_ns: IntArray
    bytes: IntArray

    @property
    def ns_per_kib(self) -> float:
        """The device's time for all of them by their size; reads that state no size count as one KiB each."""
        kib = np.where(self.bytes > 0, self.bytes / 1024, 1.0).sum()
        return float(self.service_ns.sum() / kib) if kib else 0.0

    @property
    def size_class(self) -> IntArray:
        """Reads within a factor of two in size are of one class."""
        return np.asarray(np.log2(np.maximum(self.bytes, 1)), dtype=np.int64)


def _reads(ops: OpColumns, chosen: BoolArray) -> _Reads:
    """The completed reads among some ops."""
    done = chosen & (ops.load == 1) & (ops.end == 1)
    return _Reads(ops.service_ns[done], ops.bytes[done])


def _service_ratio(own: _Reads, other: _Reads) -> float:
    """How much longer reads of like size take, over the classes that both have; 0 where none has reads enough.

    Sizes are matched since much of a read is latency: many small reads must not make a device look slow.
    """
    ratios, weights = [], []
    for size in np.unique(own.size_class).tolist():
        here, there = own.service_ns[own.size_class == size], other.service_ns[other.size_class == size]
        if min(len(here), len(there)) >= MIN_OPS and np.median(there) > 0:
            ratios.append(float(np.median(here) / np.median(there)))
            weights.append(len(here))
    return float(np.average(ratios, weights=weights)) if ratios else 0.0


def _work_share(ops: OpColumns, chosen: BoolArray, window: Window) -> float:
    """The device time that was asked for, per second of the window."""
    length = max(window.end_ns - window.start_ns, 1)
    return float(ops.service_ns[chosen].sum() / length)
