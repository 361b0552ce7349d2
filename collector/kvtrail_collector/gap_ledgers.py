"""The ledgers of all gaps between tokens (LEDGER §2).

A step is decomposed once and shared by all that get a token of it: the ledger of an ordinary gap is the difference of two
running sums. Only gaps in which something else befell their request go through the layers of paint, as if each were a
request of its own.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kvtrail_collector.facts_build import Recording
from kvtrail_collector.facts_columns import ChunkColumns, FactColumns, SpanColumns, StateColumns, WaitColumns
from kvtrail_collector.facts_rows import NO_INT, BoolArray, IntArray
from kvtrail_collector.facts_steps import StepColumns
from kvtrail_collector.gap_tokens import Gaps, SmallArray, gaps_of
from kvtrail_collector.ledger_axis import Axis, bounds_of, pairs
from kvtrail_collector.ledger_chunks import paint_chunks
from kvtrail_collector.ledger_codes import PREFILL_STEP_CODE, PURE_STEP_CODE, STALLED_CODE
from kvtrail_collector.ledger_columns import spells_of, within_requests
from kvtrail_collector.ledger_ops import OpLayout
from kvtrail_collector.ledger_paint import Amounts, Canvas, Tally
from kvtrail_collector.ledger_streams import paint_holes
from kvtrail_collector.ledger_waits import explicit_waits, paint_waits


@dataclass(frozen=True, slots=True)
class GapLedgers:
    """Gaps by request and time, and what each went to; rows of `parts` add up to the length of the gap."""

    gaps: Gaps
    start_ns: IntArray
    end_ns: IntArray
    parts: Amounts


def gap_ledgers(recording: Recording) -> GapLedgers:
    """Account for all gaps. Pure; under a microsecond an ordinary gap, 10 to 20 µs one in which something else happened."""
    gaps, steps = gaps_of(recording), recording.steps
    start, end = gaps.start_ns(steps), gaps.end_ns(steps)
    special = _special(recording.columns, gaps.request, start, end)
    tally = Tally()
    for stream in range(len(recording.timelines)):
        work = _Work.of(steps.of_stream(stream))
        own = np.flatnonzero(~special & (steps.stream[gaps.step] == stream) & (end > start))
        work.share(tally, own, start[own], end[own])
    places = np.flatnonzero(special)
    facts = _as_requests(recording.columns, gaps.request[places].astype(np.int64), start[places], end[places])
    painted = _painted(recording, facts)
    row, column = np.nonzero(painted.ns)
    tally.add(places[row], painted.codes[column], painted.ns[row, column])
    return GapLedgers(gaps, start, end, tally.table(len(gaps)))


@dataclass(frozen=True, slots=True)
class _Work:
    """The steps of one stream as disjoint intervals in order, and the running sums of both sorts of them."""

    starts: IntArray
    ends: IntArray
    pure: IntArray
    prefill: IntArray

    @classmethod
    def of(cls, steps: StepColumns) -> Self:
        """Of two steps that overlap the one that began first has what both cover."""
        known = (steps.start_ns != NO_INT) & (steps.end_ns != NO_INT)
        start, end, prefill = steps.start_ns[known], steps.end_ns[known], steps.prefill_tokens[known] > 0
        reach = np.maximum.accumulate(np.concatenate([[np.int64(NO_INT)], end]))[:-1] if len(end) else end
        start = np.maximum(start, reach)
        real = end > start
        length = (end - start)[real]
        sums = [np.concatenate([[0], np.cumsum(np.where(which, length, 0))]) for which in (~prefill[real], prefill[real])]
        return cls(start[real], end[real], *sums)

    def share(self, tally: Tally, owner: IntArray, start: IntArray, end: IntArray) -> None:
        """Give intervals to the steps that ran in them, and to nothing at all where none did."""
        pure, prefill = (self._until(which, end) - self._until(which, start) for which in (0, 1))
        tally.add(owner, PURE_STEP_CODE, pure)
        tally.add(owner, PREFILL_STEP_CODE, prefill)
        tally.add(owner, STALLED_CODE, end - start - pure - prefill)

    def _until(self, which: int, t_ns: IntArray) -> IntArray:
        """How long steps of one sort ran before each instant."""
        if not len(self.starts):
            return np.zeros(len(t_ns), dtype=np.int64)
        sums = (self.pure, self.prefill)[which]
        at = np.maximum(np.searchsorted(self.starts, t_ns, side="right") - 1, 0)
        length = sums[at + 1] - sums[at]
        inside = np.clip(t_ns - self.starts[at], 0, self.ends[at] - self.starts[at])
        return np.asarray(sums[at] + np.where(length > 0, inside, 0))


def _special(facts: FactColumns, request: SmallArray, start: IntArray, end: IntArray) -> BoolArray:
    """Gaps in which their request waited, was not admitted, computed its prompt, or a hole makes owners unknowable."""
    found = np.zeros(len(request), dtype=np.bool_)
    states = facts.states
    spans = [
        (states.request, states.t_ns, states.t_ns),
        (facts.waits.request, facts.waits.start_ns, facts.waits.end_ns),
        (facts.chunks.request, facts.chunks.start_ns, facts.chunks.end_ns),
    ]
    bounds = np.searchsorted(request, np.arange(len(facts.requests) + 1))
    for owner, low, high in spans:
        of, gap = pairs(owner, bounds)
        touched = (high[of] >= start[gap]) & (low[of] <= end[gap])
        found[gap[touched]] = True
    admitted = np.zeros(len(facts.requests), dtype=np.bool_)
    admitted[states.request] = True
    found |= ~admitted[request] | _not_admitted(states, request, start)
    for index, line in enumerate(facts.timelines):
        for low_ns, high_ns in line.holes:
            found |= (facts.requests.stream[request] == index) & (start < high_ns) & (end > low_ns)
    return found


def _not_admitted(states: StateColumns, request: SmallArray, start: IntArray) -> BoolArray:
    """Gaps that begin while their request is not admitted."""
    if not len(states.request):
        return np.ones(len(request), dtype=np.bool_)
    order = np.lexsort(
        (
            np.concatenate([np.zeros(len(states.t_ns)), np.ones(len(start))]),
            np.concatenate([states.t_ns, start]),
            np.concatenate([states.request, request]),
        )
    )
    told = order < len(states.t_ns)
    last = np.maximum.accumulate(np.where(told, np.arange(len(order)), -1))
    at = order[np.maximum(last, 0)]
    found = np.ones(len(request), dtype=np.bool_)
    asked = ~told
    gap = order[asked] - len(states.t_ns)
    known = (last[asked] >= 0) & (states.request[np.minimum(at[asked], len(states.request) - 1)] == request[gap])
    found[gap] = ~(known & states.admitted[np.minimum(at[asked], len(states.request) - 1)])
    return found


def _as_requests(facts: FactColumns, request: IntArray, start: IntArray, end: IntArray) -> FactColumns:
    """Gaps as if each were a request of its own, with all facts of theirs."""
    requests, count = facts.requests, len(facts.requests)
    columns = {name: getattr(requests, name)[request] for name in requests.__slots__}
    own_of, own = pairs(request, bounds_of(facts.own_request, count))
    state_of, state = pairs(request, bounds_of(facts.states.request, count))
    wait_of, wait = pairs(request, bounds_of(facts.waits.request, count))
    chunk_of, chunk = pairs(request, bounds_of(facts.chunks.request, count))
    states, waits, chunks = facts.states, facts.waits, facts.chunks
    nothing = np.zeros(0, dtype=np.int64)
    return replace(
        facts,
        requests=type(requests)(**{**columns, "arrived_ns": start, "end_ns": end}),
        states=StateColumns(state_of, states.t_ns[state], states.kind[state], states.reason[state]),
        lookups=SpanColumns(nothing, nothing, nothing),
        waits=WaitColumns(wait_of, waits.start_ns[wait], waits.end_ns[wait], waits.op[wait]),
        chunks=ChunkColumns(
            chunk_of, *(getattr(chunks, name)[chunk] for name in ("start_ns", "end_ns", "tokens", "reason", "known", "step"))
        ),
        own_request=own_of,
        own_op=facts.own_op[own],
    )


def _painted(recording: Recording, facts: FactColumns) -> Amounts:
    """Gaps by layers: holes, explicit waits and prefill as ever, then states, then steps, then nothing at all."""
    axis = Axis.of(facts.requests.arrived_ns, facts.requests.end_ns)
    canvas, layout, spells = Canvas(axis), OpLayout.of(facts.ops), spells_of(axis, facts.states)
    paint_holes(canvas, facts)
    paint_waits(canvas, layout, facts, explicit_waits(axis, facts, spells.chosen(spells.awaits_load)))
    paint_chunks(canvas, facts.chunks)
    own = spells.chosen(~spells.admitted)
    canvas.paint(own.request, own.starts, own.ends, spells.codes[~spells.admitted])
    starts, ends = within_requests(axis, *canvas.cover.gaps(int(axis.origin[-1])))
    gap = axis.owner(starts)
    for stream in range(len(recording.timelines)):
        here = facts.requests.stream[gap] == stream
        begin, until = axis.instant(gap[here], starts[here]), axis.instant(gap[here], ends[here])
        _Work.of(recording.steps.of_stream(stream)).share(canvas.shown, gap[here], begin, until)
    return canvas.shown.table(len(facts.requests))
