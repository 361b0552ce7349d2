"""Ops laid out in time as columns: eight borders and seven labels each, and the order in which they own an instant."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from kvtrail_collector.facts_ops import OpColumns
from kvtrail_collector.facts_rows import NO_INT, BoolArray, IntArray
from kvtrail_collector.ledger_axis import Axis, Cover, ends_last
from kvtrail_collector.ledger_codes import UNATTRIBUTED_CODE, op_codes

_FOREVER: Final = np.int64(2**63 - 1)
SEGMENTS: Final = 7


@dataclass(frozen=True, slots=True)
class OpLayout:
    """Segment k of op i runs from `borders_ns[i, k]` to `borders_ns[i, k + 1]` under the label `codes[i, k]`.

    The six parts from the queueing on, clipped from the end to the op's span, then `copy_wait`. An op without a closing
    event is known until it went into service, and `unattributed` from there on. `rank` orders ops as they own an
    instant that several cover: ends last, then starts later, then smaller id.
    """

    borders_ns: IntArray
    codes: IntArray
    rank: IntArray
    never_started: BoolArray

    @classmethod
    def of(cls, ops: OpColumns) -> Self:
        """The layout of all ops."""
        opened = ops.closing_ns == NO_INT
        closing = np.where(opened, _FOREVER, ops.closing_ns)
        borders = np.empty((len(ops.op), SEGMENTS + 1), dtype=np.int64)
        borders[:, 0] = ops.queued_ns
        np.cumsum(ops.parts_ns, axis=1, out=borders[:, 1:SEGMENTS])
        borders[:, 1:SEGMENTS] += ops.queued_ns[:, None]
        np.minimum(borders[:, 1:SEGMENTS], closing[:, None], out=borders[:, 1:SEGMENTS])
        borders[:, SEGMENTS] = closing
        codes = op_codes(ops.src, ops.dst)
        borders[opened, 1] = np.maximum(ops.queued_ns, np.where(ops.started_ns == NO_INT, 0, ops.started_ns))[opened]
        borders[opened, 2:] = _FOREVER
        codes[opened, 1] = UNATTRIBUTED_CODE
        return cls(borders, codes, _rank(ops, closing), opened & (ops.started_ns == NO_INT))


def _rank(ops: OpColumns, closing_ns: IntArray) -> IntArray:
    """The place of each op in the order in which ops own an instant."""
    rank = np.empty(len(ops.op), dtype=np.int64)
    rank[np.lexsort((ops.op, -ops.queued_ns, -closing_ns))] = np.arange(len(ops.op))
    return rank


@dataclass(frozen=True, slots=True)
class Regions:
    """Disjoint stretches of the axis, in which ops may own time."""

    request: IntArray
    starts: IntArray
    ends: IntArray


@dataclass(frozen=True, slots=True)
class OwnedOps:
    """What ops own of regions where no other op of the region does: disjoint intervals, each of one op."""

    request: IntArray
    op: IntArray
    starts: IntArray
    ends: IntArray


def owned_ops(axis: Axis, layout: OpLayout, regions: Regions, region: IntArray, op: IntArray) -> OwnedOps:
    """Which op owns what of which region, given pairs of both: of several that cover an instant the one that ends last."""
    request = regions.request[region]
    starts = np.maximum(axis.place(request, layout.borders_ns[op, 0]), regions.starts[region])
    ends = np.minimum(axis.place(request, layout.borders_ns[op, SEGMENTS]), regions.ends[region])
    real = np.flatnonzero(starts < ends)
    order = real[np.lexsort((layout.rank[op[real]], -regions.starts[region[real]]))]
    starts, until = starts[order], ends_last(starts[order], ends[order])
    kept = until > starts
    order = order[kept]
    return OwnedOps(request[order], op[order], starts[kept], until[kept])


def op_amounts(axis: Axis, layout: OpLayout, owned: OwnedOps, stronger: Cover) -> IntArray:
    """How much each segment of ops comes to own of what they own among themselves, after what is stronger."""
    borders = borders_on(axis, layout, owned.request, owned.op)
    np.clip(borders, owned.starts[:, None], owned.ends[:, None], out=borders)
    return np.diff(stronger.free_until(borders), axis=1)


def borders_on(axis: Axis, layout: OpLayout, request: IntArray, op: IntArray) -> IntArray:
    """The borders of ops on the axis, clipped to the interval of a request."""
    start = axis.start_ns[request][:, None]
    borders = np.minimum(np.maximum(layout.borders_ns[op], start), axis.end_ns[request][:, None])
    return np.asarray(borders + (axis.origin[:-1][request][:, None] - start))


def segment_codes(layout: OpLayout, op: IntArray, censored: BoolArray) -> IntArray:
    """The labels of the segments of ops.

    An op that is still queued when its censored request was last seen has waited in the queue, so far.
    """
    codes = layout.codes[op]
    waits = layout.never_started[op] & censored
    codes[waits, 1] = codes[waits, 0]
    return codes
