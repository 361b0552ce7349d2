"""Rule 2 as columns: prefill chunks, steps of one request split by tokens."""

import numpy as np
from kvtrail_schema.enums import Reason

from kvtrail_collector.facts_columns import ChunkColumns
from kvtrail_collector.facts_rows import BoolArray, IntArray
from kvtrail_collector.ledger_axis import ends_last
from kvtrail_collector.ledger_codes import UNATTRIBUTED_CODE, chunk_codes, computed_reasons
from kvtrail_collector.ledger_paint import Canvas


def paint_chunks(canvas: Canvas, chunks: ChunkColumns) -> None:
    """Steps in which requests computed; should two overlap, the one that ends last owns what both cover."""
    if not len(chunks.request):
        return
    axis = canvas.axis
    # Within a step: recompute first, by reason, then what is new. Steps: those that end last first.
    reason = computed_reasons(chunks.reason)
    order = np.lexsort((reason, reason == Reason.NEW, -chunks.start_ns, -chunks.end_ns, -chunks.request))
    request, start, end = chunks.request[order], chunks.start_ns[order], chunks.end_ns[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (np.diff(request) != 0) | (np.diff(start) != 0) | (np.diff(end) != 0)
    low, high = _split(start, end, chunks.tokens[order], first)
    codes = _codes(chunks, order, first)
    group = np.cumsum(first) - 1
    owned = _owned(axis.place(request, start)[first], axis.place(request, end)[first])
    low, high = axis.place(request, low), axis.place(request, high)
    canvas.announce(request, codes, np.maximum(high - low, 0))
    starts, until = owned
    shown_low = np.clip(low, starts[group], until[group])
    ns = canvas.cover.free(shown_low, np.clip(high, starts[group], until[group]))
    canvas.shown.add(request, codes, ns)
    canvas.announce(request, codes, -ns)
    canvas.cover = canvas.cover.plus(starts, until)


def _owned(starts: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    """What each step owns among the steps of its request."""
    until = starts.copy()
    real = ends > starts
    until[real] = ends_last(starts[real], ends[real])
    return starts, until


def _split(start: IntArray, end: IntArray, tokens: IntArray, first: BoolArray) -> tuple[IntArray, IntArray]:
    """The piece of each chunk of its step: by tokens, rounded down, what remains to the last."""
    begins = np.flatnonzero(first)
    counts = np.diff(np.append(begins, len(start)))
    total = np.repeat(np.add.reduceat(tokens, begins), counts)
    whole, rest = np.divmod(np.maximum(end - start, 0), np.maximum(total, 1))
    # In two steps, as the product of a long step and many tokens would not fit.
    length = np.where(total > 0, whole * tokens + rest * tokens // np.maximum(total, 1), 0)
    until = np.cumsum(length)
    offset = until - length - np.repeat((until - length)[begins], counts)
    last = np.append(first[1:], [True])
    return start + offset, np.where(last, end, start + offset + length)


def _codes(chunks: ChunkColumns, order: IntArray, first: BoolArray) -> IntArray:
    """The labels of chunks; where the start of a step is not known, neither is its owner."""
    begins = np.flatnonzero(first)
    known = np.logical_and.reduceat(chunks.known[order], begins)
    counts = np.diff(np.append(begins, len(order)))
    return np.where(np.repeat(known, counts), chunk_codes(chunks.reason[order]), UNATTRIBUTED_CODE)
