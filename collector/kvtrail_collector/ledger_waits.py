"""Rule 1 as columns: explicit waits, and the ops that were waited for."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from kvtrail_collector.facts_columns import UNNAMED, FactColumns
from kvtrail_collector.facts_join import distinct_pairs
from kvtrail_collector.facts_rows import NO_INT, IntArray
from kvtrail_collector.ledger_axis import Axis, bounds_of, distinct, expanded, pairs
from kvtrail_collector.ledger_codes import COPY_WAIT_CODE, DEFERRED_CODE
from kvtrail_collector.ledger_ops import OpLayout, Regions, op_amounts, owned_ops, segment_codes
from kvtrail_collector.ledger_paint import Canvas

_FOREVER: Final = np.int64(2**63 - 1)


@dataclass(frozen=True, slots=True)
class WaitPieces:
    """Disjoint pieces in which the same waits are on; pairs of a piece and a place of an op, or `UNNAMED`, say for what."""

    regions: Regions
    piece: IntArray
    op: IntArray


def explicit_waits(axis: Axis, facts: FactColumns, awaiting: Regions) -> WaitPieces:
    """Waits that engines stated: for copies, and while the scheduler waits for a load."""
    waits = facts.waits
    request = np.concatenate([waits.request, awaiting.request])
    starts = np.concatenate([axis.place(waits.request, waits.start_ns), awaiting.starts])
    ends = np.concatenate([axis.place(waits.request, waits.end_ns), awaiting.ends])
    op = np.concatenate([waits.op, np.full(len(awaiting.request), UNNAMED)])
    real = ends > starts
    request, starts, ends, op = request[real], starts[real], ends[real], op[real]
    borders = distinct(np.concatenate([starts, ends]))
    first = np.searchsorted(borders, starts)
    wait, piece = expanded(first, np.searchsorted(borders, ends) - first)
    owner = np.full(len(borders), -1)
    owner[piece] = request[wait]
    used = np.flatnonzero(owner >= 0)
    regions = Regions(owner[used], borders[used], borders[np.minimum(used + 1, len(borders) - 1)])
    return WaitPieces(regions, np.searchsorted(used, piece), op[wait])


def paint_waits(canvas: Canvas, layout: OpLayout, facts: FactColumns, waits: WaitPieces) -> tuple[IntArray, IntArray]:
    """Give waits to the ops waited for, and what is left of them to noticing late; returns pairs (request, named op)."""
    regions = waits.regions
    piece, op = _waited_for(facts, waits, len(canvas.axis))
    owned = owned_ops(canvas.axis, layout, regions, piece, op)
    ns = op_amounts(canvas.axis, layout, owned, canvas.cover)
    codes = segment_codes(layout, owned.op, facts.requests.censored[owned.request])
    canvas.shown.add(owned.request, codes, ns)
    canvas.announce(owned.request, codes, -ns)
    canvas.cover = canvas.cover.plus(owned.starts, owned.ends)
    noticed = _noticed(canvas.axis, facts, regions, piece, op)
    canvas.paint(regions.request, regions.starts, noticed, COPY_WAIT_CODE)
    canvas.paint(regions.request, noticed, regions.ends, DEFERRED_CODE)
    named = facts.waits.op >= 0
    return facts.waits.request[named], facts.waits.op[named]


def _waited_for(facts: FactColumns, waits: WaitPieces, requests: int) -> tuple[IntArray, IntArray]:
    """Pairs of a piece and an op waited for: the one named, or all loads of the request where none is."""
    loads = facts.ops.load[facts.own_op] == 1
    bounds = bounds_of(facts.own_request[loads], requests)
    unnamed, named = waits.op == UNNAMED, waits.op >= 0
    pieces = waits.piece[unnamed]
    of, place = pairs(waits.regions.request[pieces], bounds)
    piece = np.concatenate([waits.piece[named], pieces[of]])
    return distinct_pairs(piece, np.concatenate([waits.op[named], facts.own_op[loads][place]]))


def _noticed(axis: Axis, facts: FactColumns, regions: Regions, piece: IntArray, op: IntArray) -> IntArray:
    """Where in each piece the data of the first op was there; at its end where no op closed."""
    closing = facts.ops.closing_ns[op]
    found = np.full(len(regions.request), _FOREVER)
    np.minimum.at(found, piece, np.where(closing == NO_INT, _FOREVER, closing))
    return np.clip(axis.place(regions.request, found), regions.starts, regions.ends)
