"""Steps of the scheduler: when each ran, and when any ran."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts import Timeline
from kvtrail_collector.facts_rows import NO_INT, IdArray, IntArray, Interval, Rows, merged

_NEVER: Final = np.int64(2**63 - 1)


@dataclass(frozen=True, slots=True)
class StepColumns:
    """All steps of some rows, sorted by (stream, start). An absent start or end is `NO_INT`."""

    stream: IntArray
    step: IdArray
    start_ns: IntArray
    end_ns: IntArray
    tokens: IntArray
    prefill_tokens: IntArray

    def of_stream(self, index: int) -> "StepColumns":
        """The steps of one stream."""
        own = self.stream == index
        return StepColumns(*(getattr(self, name)[own] for name in self.__slots__))


def step_columns(rows: Rows) -> StepColumns:
    """Pair the starts and ends of steps."""
    places = rows.of_kinds(Kind.STEP_STARTED, Kind.STEP_FINISHED)
    step, stream = rows.ids["step"][places], rows.stream[places]
    order = np.lexsort((rows.seq[places], step, stream))
    places, step, stream = places[order], step[order], stream[order]
    new = np.ones(len(places), dtype=bool)
    new[1:] = (step[1:] != step[:-1]) | (stream[1:] != stream[:-1])
    starts = np.flatnonzero(new)
    if not len(starts):
        ints = np.zeros(0, dtype=np.int64)
        return StepColumns(ints, np.zeros(0, dtype=np.uint64), ints, ints, ints, ints)
    opened, t_ns = rows.kind[places] == Kind.STEP_STARTED, rows.t_ns[places]
    first = np.minimum.reduceat(np.where(opened, t_ns, _NEVER), starts)
    last = np.maximum.reduceat(np.where(opened, NO_INT, t_ns), starts)
    found = StepColumns(
        stream=stream[starts],
        step=step[starts],
        start_ns=np.where(first == _NEVER, NO_INT, first),
        end_ns=last,
        tokens=np.maximum.reduceat(rows.ints["tokens"][places], starts),
        prefill_tokens=np.maximum.reduceat(rows.ints["prefill_tokens"][places], starts),
    )
    return steps_by_time(found)


def steps_by_time(steps: StepColumns) -> StepColumns:
    """Steps in the order of their streams and of time."""
    order = np.lexsort((np.where(steps.start_ns == NO_INT, steps.end_ns, steps.start_ns), steps.stream))
    return StepColumns(*(getattr(steps, name)[order] for name in StepColumns.__slots__))


def timelines(rows: Rows, steps: StepColumns, now_ns: int | None = None) -> list[Timeline]:
    """What the requests of each stream share; `now_ns` where more is known of their time than the rows say."""
    return [timeline(rows, steps.of_stream(index), index, now_ns) for index in range(len(rows.streams))]


def timeline(rows: Rows, steps: StepColumns, index: int, now_ns: int | None) -> Timeline:
    """When steps of one stream ran, and where rows of it are missing."""
    own = rows.t_ns[rows.stream == index]
    last_ns = max(int(own.max()) if len(own) else 0, now_ns or 0)
    known, unknown = _runs(steps.start_ns.tolist(), steps.end_ns.tolist(), last_ns)
    busy = merged(known)
    lengths = np.cumsum([0, *(end - start for start, end in busy)]).tolist()
    return Timeline(
        stream=rows.streams[index],
        busy=tuple(busy),
        busy_starts_ns=tuple(start for start, _ in busy),
        busy_before_ns=tuple(lengths[: len(busy)]),
        unknown=tuple(merged(unknown)),
        holes=rows.holes[index],
        last_ns=last_ns,
    )


def _runs(starts: list[int], ends: list[int], last_ns: int) -> tuple[list[Interval], list[Interval]]:
    """Steps that surely ran, and stretches in which one may have; the last one, still open, runs until now."""
    known: list[Interval] = []
    unknown: list[Interval] = []
    before = None
    for start, end, following in zip(starts, ends, _following(starts), strict=True):
        if start >= 0 and end >= 0:
            known.append((start, end))
        elif end < 0 and following is None:
            known.append((start, last_ns))
        elif end < 0 and following is not None:
            unknown.append((start, following))
        elif before is not None:
            unknown.append((before, end))
        before = max(end, start)
    return known, unknown


def _following(starts: list[int]) -> list[int | None]:
    """For each step the first start that is known of those after it."""
    found: list[int | None] = []
    following: int | None = None
    for start in reversed(starts):
        found.append(following)
        following = start if start >= 0 else following
    return found[::-1]
