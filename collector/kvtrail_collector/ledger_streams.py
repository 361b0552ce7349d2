"""What the requests of one stream share, on the axis: holes in seq, steps whose end was lost, and when steps ran."""

import numpy as np

from kvtrail_collector.facts import Interval, Timeline
from kvtrail_collector.facts_columns import FactColumns
from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.ledger_axis import expanded
from kvtrail_collector.ledger_codes import UNATTRIBUTED_CODE
from kvtrail_collector.ledger_ops import Regions
from kvtrail_collector.ledger_paint import Canvas


def paint_holes(canvas: Canvas, facts: FactColumns) -> None:
    """Rule 7 first: where rows are missing, what the others say cannot be trusted to be all."""
    for index, line in enumerate(facts.timelines):
        if line.holes:
            own = np.flatnonzero(facts.requests.stream == index)
            whole = Regions(own, canvas.axis.origin[own], canvas.axis.origin[own + 1])
            _paint(canvas, whole, line.holes)


def paint_unknown(canvas: Canvas, facts: FactColumns, admitted: Regions) -> None:
    """Whether a step ran whose end was lost cannot be known; it matters where a request has nothing of its own."""
    for index, line in enumerate(facts.timelines):
        if line.unknown:
            own = facts.requests.stream[admitted.request] == index
            _paint(canvas, Regions(admitted.request[own], admitted.starts[own], admitted.ends[own]), line.unknown)


def _paint(canvas: Canvas, regions: Regions, spans: tuple[Interval, ...]) -> None:
    """Give what lies in disjoint spans of time to nobody, within regions."""
    axis = canvas.axis
    low, high = np.array(spans, dtype=np.int64).T
    begin, end = axis.instant(regions.request, regions.starts), axis.instant(regions.request, regions.ends)
    first = np.searchsorted(high, begin, side="right")
    region, span = expanded(first, np.maximum(np.searchsorted(low, end, side="left") - first, 0))
    request = regions.request[region]
    starts = np.maximum(axis.place(request, low[span]), regions.starts[region])
    ends = np.minimum(axis.place(request, high[span]), regions.ends[region])
    canvas.paint(request, starts, np.maximum(ends, starts), UNATTRIBUTED_CODE)


def step_ns(facts: FactColumns, request: IntArray, start_ns: IntArray, end_ns: IntArray) -> IntArray:
    """How long steps of a request's stream ran within intervals of time."""
    stream = facts.requests.stream[request]
    found = np.zeros(len(request), dtype=np.int64)
    for index, line in enumerate(facts.timelines):
        own = slice(None) if len(facts.timelines) == 1 else np.flatnonzero(stream == index)
        if line.busy:
            found[own] = busy_until(line, end_ns[own]) - busy_until(line, start_ns[own])
    return found


def busy_until(line: Timeline, t_ns: IntArray) -> IntArray:
    """How long steps of a stream ran before each instant."""
    busy = np.array(line.busy, dtype=np.int64)
    starts, ends, before = busy[:, 0], busy[:, 1], np.array(line.busy_before_ns, dtype=np.int64)
    at = np.searchsorted(starts, t_ns, side="right") - 1
    inside = np.maximum(at, 0)
    return np.where(at >= 0, before[inside] + np.minimum(t_ns, ends[inside]) - starts[inside], 0)
