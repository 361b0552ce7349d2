"""In which interval a prefill chunk was computed: that of its step, or what is left of it where rows were lost."""

import numpy as np

from kvtrail_collector.facts_rows import NO_INT, BoolArray, IdArray, IntArray, Rows
from kvtrail_collector.facts_steps import StepColumns


def chunk_spans(rows: Rows, steps: StepColumns, places: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
    """The interval of the step of each chunk, and whether its start is known.

    A chunk is emitted when its step ends, so a lost end is the chunk's own time; a lost start could be anywhere since
    the end of the step before.
    """
    own = rows.t_ns[places]
    start, end = np.full(len(places), NO_INT), np.full(len(places), NO_INT)
    if len(steps.step):
        order = np.lexsort((steps.step, steps.stream))
        found = _find(steps.stream[order], steps.step[order], rows.stream[places], rows.ids["step"][places])
        inside = order[np.maximum(found, 0)]
        start = np.where(found >= 0, steps.start_ns[inside], NO_INT)
        end = np.where(found >= 0, steps.end_ns[inside], NO_INT)
    end = np.where(end == NO_INT, own, end)
    known = start != NO_INT
    if known.all():
        return start, end, known
    return np.where(known, start, _end_before(steps, rows.stream[places], end)), end, known


def _find(stream: IntArray, step: IdArray, wanted_stream: IntArray, wanted_step: IdArray) -> IntArray:
    """The place of each wanted (stream, step) among sorted ones, of which there are some; -1 where there is none."""
    codes = np.unique(np.concatenate([step, wanted_step]))
    width = np.int64(len(codes) + 1)
    have = stream * width + np.searchsorted(codes, step)
    want = wanted_stream * width + np.searchsorted(codes, wanted_step)
    place = np.minimum(np.searchsorted(have, want), len(have) - 1)
    return np.where(have[place] == want, place, -1)


def _end_before(steps: StepColumns, stream: IntArray, t_ns: IntArray) -> IntArray:
    """The latest end of a step of the same stream before an instant; the instant itself where there is none."""
    result = t_ns.copy()
    for index in np.unique(stream):
        ends = np.sort(steps.end_ns[(steps.stream == index) & (steps.end_ns != NO_INT)])
        own = stream == index
        place = np.searchsorted(ends, t_ns[own], side="left") - 1
        result[own] = np.where(place >= 0, ends[np.maximum(place, 0)], t_ns[own]) if len(ends) else t_ns[own]
    return result
