"""The ledgers of all requests at once, as columns (LEDGER §1).

The same rules as in `ledger.py`, which explains one request in objects: layers of paint, strongest first. Here each
layer is the disjoint intervals of all requests on one axis, and what it comes to own is what stronger layers leave free.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from kvtrail_schema.enums import Reason
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts_columns import FactColumns, StateColumns
from kvtrail_collector.facts_join import distinct_pairs
from kvtrail_collector.facts_rows import BoolArray, IntArray
from kvtrail_collector.ledger_axis import Axis, Cover, bounds_of, distinct, pairs
from kvtrail_collector.ledger_chunks import paint_chunks
from kvtrail_collector.ledger_codes import BUDGET_CODE, LOOKUP_CODE, STALLED_CODE, wait_codes
from kvtrail_collector.ledger_ops import OpLayout, Regions, borders_on, op_amounts, owned_ops, segment_codes
from kvtrail_collector.ledger_paint import Amounts, Canvas
from kvtrail_collector.ledger_streams import paint_holes, paint_unknown, step_ns
from kvtrail_collector.ledger_waits import explicit_waits, paint_waits

_BEFORE_ALL: Final = np.int64(-(2**63))


@dataclass(frozen=True, slots=True)
class Ledgers:
    """One row a request, in the order of the facts: rows of `parts` add up to `end_ns - start_ns`.

    `hidden` is what the parts covered up; it is not additive.
    """

    start_ns: IntArray
    end_ns: IntArray
    parts: Amounts
    hidden: Amounts


@dataclass(frozen=True, slots=True)
class Spells:
    """Stretches in one state; those of a request follow each other without a gap."""

    regions: Regions
    admitted: BoolArray
    awaits_load: BoolArray
    codes: IntArray

    def chosen(self, mask: BoolArray) -> Regions:
        """Some of them."""
        own = self.regions
        return Regions(own.request[mask], own.starts[mask], own.ends[mask])


def ledgers_of(facts: FactColumns) -> Ledgers:
    """Account for all requests. Pure; 10 to 20 µs a request; parts add up exactly, none is negative."""
    requests = facts.requests
    axis = Axis.of(requests.arrived_ns, requests.end_ns)
    canvas, layout = Canvas(axis), OpLayout.of(facts.ops)
    spells = spells_of(axis, facts.states)
    paint_holes(canvas, facts)
    waits = explicit_waits(axis, facts, spells.chosen(spells.awaits_load))
    named_request, named_op = paint_waits(canvas, layout, facts, waits)
    _announce_ops(canvas, layout, facts, named_request, named_op)
    paint_chunks(canvas, facts.chunks)
    _paint_loads(canvas, layout, facts, spells.chosen(spells.admitted))
    _paint_lookups(canvas, facts)
    idle = ~spells.admitted
    own = spells.chosen(idle)
    canvas.paint(own.request, own.starts, own.ends, spells.codes[idle])
    _paint_idle(canvas, facts, spells.chosen(spells.admitted))
    parts = canvas.shown.table(len(requests))
    assert np.array_equal(parts.ns.sum(axis=1), requests.end_ns - requests.arrived_ns), "ledgers do not add up"
    return Ledgers(requests.arrived_ns, requests.end_ns, parts, canvas.covered.table(len(requests)))


def spells_of(axis: Axis, states: StateColumns) -> Spells:
    """The states of requests from their arrival to their end, without a gap: each waits until it is told otherwise."""
    count = len(axis)
    first = np.arange(count)
    request = np.concatenate([first, states.request])
    t_ns = np.concatenate([np.full(count, _BEFORE_ALL), states.t_ns])
    # Changes are in the order of time already: a stable sort by request puts each beginning before them.
    order = np.argsort(request, kind="stable")
    request, t_ns = request[order], t_ns[order]
    starts = axis.place(request, t_ns)
    ends = np.append(starts[1:], axis.origin[-1:])
    last = np.append(request[1:] != request[:-1], [True])[: len(request)]
    ends = np.where(last, axis.origin[request + 1], ends)
    reason = np.concatenate([np.full(count, -1), states.reason])[order]
    waiting = np.concatenate([np.ones(count, dtype=np.bool_), states.kind == Kind.REQUEST_WAITING])[order]
    admitted = np.concatenate([np.zeros(count, dtype=np.bool_), states.admitted])[order]
    real = ends > starts
    return Spells(
        regions=Regions(request[real], starts[real], ends[real]),
        admitted=admitted[real],
        awaits_load=(waiting & (reason == Reason.KV_LOAD))[real],
        codes=wait_codes(reason[real]),
    )


def _announce_ops(canvas: Canvas, layout: OpLayout, facts: FactColumns, request: IntArray, op: IntArray) -> None:
    """Count what the ops of requests cover, own ones and those they waited for by name, each once."""
    everything = np.concatenate([facts.own_request, request]), np.concatenate([facts.own_op, op])
    request, op = distinct_pairs(*everything) if len(op) else (facts.own_request, facts.own_op)
    codes = segment_codes(layout, op, facts.requests.censored[request])
    canvas.announce(request, codes, np.maximum(np.diff(borders_on(canvas.axis, layout, request, op), axis=1), 0))


def _paint_loads(canvas: Canvas, layout: OpLayout, facts: FactColumns, admitted: Regions) -> None:
    """Rule 3: while admitted and not computing, a request's own load is what holds it. Write-backs hold nobody."""
    loads = facts.ops.load[facts.own_op] == 1
    bounds = bounds_of(facts.own_request[loads], len(canvas.axis))
    region, place = pairs(admitted.request, bounds)
    owned = owned_ops(canvas.axis, layout, admitted, region, facts.own_op[loads][place])
    ns = op_amounts(canvas.axis, layout, owned, canvas.cover)
    codes = segment_codes(layout, owned.op, facts.requests.censored[owned.request])
    canvas.shown.add(owned.request, codes, ns)
    canvas.announce(owned.request, codes, -ns)
    canvas.cover = canvas.cover.plus(owned.starts, owned.ends)


def _paint_lookups(canvas: Canvas, facts: FactColumns) -> None:
    """Rule 4."""
    lookups, axis = facts.lookups, canvas.axis
    starts, ends = axis.place(lookups.request, lookups.start_ns), axis.place(lookups.request, lookups.end_ns)
    canvas.announce(lookups.request, LOOKUP_CODE, np.maximum(ends - starts, 0))
    union = Cover.of(starts, ends)
    starts, ends = within_requests(axis, union.starts[1:], union.ends[1:])
    request = axis.owner(starts)
    canvas.announce(request, LOOKUP_CODE, -canvas.paint(request, starts, ends, LOOKUP_CODE))


def _paint_idle(canvas: Canvas, facts: FactColumns, admitted: Regions) -> None:
    """Rule 6: admitted with nothing of its own: others had the budget while a step ran, else nothing ran at all."""
    paint_unknown(canvas, facts, admitted)
    axis = canvas.axis
    starts, ends = within_requests(axis, *canvas.cover.gaps(int(axis.origin[-1])))
    request = axis.owner(starts)
    busy = step_ns(facts, request, axis.instant(request, starts), axis.instant(request, ends))
    canvas.shown.add(request, BUDGET_CODE, busy)
    canvas.shown.add(request, STALLED_CODE, ends - starts - busy)


def within_requests(axis: Axis, starts: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    """Disjoint intervals in order, cut where one request ends and the next begins."""
    if not len(starts):
        return starts, ends
    at = np.maximum(np.searchsorted(starts, axis.origin, side="right") - 1, 0)
    cuts = distinct(axis.origin[(starts[at] < axis.origin) & (axis.origin < ends[at])])
    begins = np.sort(np.concatenate([starts, cuts]))
    piece = np.searchsorted(starts, begins, side="right") - 1
    following = axis.origin[np.minimum(np.searchsorted(axis.origin, begins, side="right"), len(axis))]
    return begins, np.minimum(ends[piece], following)
