"""Steps of a commit that may change ledgers which are kept: whether there are any, and the requests that they touch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from kvtrail_schema.kinds import Kind
from numpy.typing import NDArray

from kvtrail_collector.store.reach import LOOK_NS, Notes

_MOST_OPEN: Final = 64
_FIRST_NS: Final = -(2**63)
_LAST_NS: Final = 2**63 - 1
_NO_ID: Final = 2**64 - 1
_STARTED: Final = Kind.STEP_STARTED.value
_FINISHED: Final = Kind.STEP_FINISHED.value


class Steps(NamedTuple):
    """Rows of steps of one stream; what does not start one ends one."""

    step: NDArray[np.uint64]
    t_ns: NDArray[np.int64]
    starts: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LateSteps:
    """Rows of steps of one stream that came late: their first and last time, and the span of their ids."""

    stream_id: int
    first_ns: int
    last_ns: int
    first_step: int
    last_step: int

    def touch(self) -> str:
        """The statement that touches the requests which lived beside them.

        A step that comes to be known, or longer, or shorter, changes what is known up to the steps beside it: where the one
        before did not end, and where it is not known when the next one began. So requests are touched that lived between
        the beginning and the end of a step before, and those of one behind.
        """
        return f"""
        INSERT INTO touched_requests BY NAME
        WITH near AS MATERIALIZED (
            SELECT t_ns, coalesce(step, {_NO_ID}) AS step, kind = {_STARTED} AS starts FROM events
            WHERE stream_id = {self.stream_id} AND kind IN ({_STARTED}, {_FINISHED})
                AND t_ns BETWEEN {_bounded(self.first_ns - LOOK_NS)} AND {_bounded(self.last_ns + LOOK_NS)}
        ), own AS (
            SELECT least(min(t_ns), {self.first_ns}) AS first_ns, greatest(max(t_ns), {self.last_ns}) AS last_ns
            FROM near WHERE step BETWEEN {self.first_step} AND {self.last_step}
        ), changed AS (
            SELECT least(coalesce(max(t_ns) FILTER (starts AND t_ns < first_ns), {_FIRST_NS}),
                    coalesce(max(t_ns) FILTER (NOT starts AND t_ns < first_ns), {_FIRST_NS})) AS from_ns,
                greatest(coalesce(min(t_ns) FILTER (starts AND t_ns > last_ns), {_LAST_NS}),
                    coalesce(min(t_ns) FILTER (NOT starts AND t_ns > last_ns), {_LAST_NS})) AS until_ns
            FROM near, own
        )
        SELECT stream_id, req, 1 + (SELECT coalesce(max(touch), 0) FROM touched_requests) AS touch
        FROM requests, changed
        WHERE stream_id = {self.stream_id} AND arrived_ns < until_ns AND arrived_ns < {_bounded(self.last_ns + 2 * LOOK_NS)}
            AND coalesce(first_token_ns, ended_ns, {_LAST_NS}) > greatest(from_ns, {_bounded(self.first_ns - 2 * LOOK_NS)})
        """  # noqa: S608  # numbers of ours


def _bounded(t_ns: int) -> int:
    """A time that fits."""
    return min(max(t_ns, _FIRST_NS), _LAST_NS)


def late_steps(stream_id: int, steps: Steps, notes: Notes, kept_ns: int) -> list[LateSteps]:
    """The rows of steps of a commit as one span, unless it is sure that no ledger changes that ends at `kept_ns` or before."""
    if not len(steps.step) or _surely_behind(steps, notes, kept_ns):
        return []
    span = int(steps.t_ns.min()), int(steps.t_ns.max()), int(steps.step.min()), int(steps.step.max())
    return [LateSteps(stream_id, *span)]


def _surely_behind(steps: Steps, notes: Notes, kept_ns: int) -> bool:
    """Whether all steps began, and the one before them ended, behind what is kept; where that one is open, it began there."""
    first_ns, started_ns, finished_ns = int(steps.t_ns.min()), notes.started_ns, notes.finished_ns
    if started_ns is None or finished_ns is None:
        return False
    is_open = started_ns in notes.open_steps.values()
    if (min(started_ns, finished_ns) if is_open else finished_ns) < kept_ns or max(started_ns, finished_ns) > first_ns:
        return False
    known = notes.open_steps
    older = steps.step[steps.step <= np.uint64(max(notes.largest_step, 0))]
    unbegun = np.setdiff1d(steps.step[~steps.starts], steps.step[steps.starts])
    return all(known.get(step, _FIRST_NS) >= kept_ns for step in {*older.tolist(), *unbegun.tolist()})


def after_steps(notes: Notes, steps: Steps) -> Notes:
    """The notes of a stream behind rows of steps."""
    if not len(steps.step):
        return notes
    begun, ended = steps.starts, ~steps.starts
    unended = np.flatnonzero(begun & ~np.isin(steps.step, steps.step[ended]))[-_MOST_OPEN:]
    gone = set(steps.step[ended].tolist())
    kept = {step: t_ns for step, t_ns in notes.open_steps.items() if step not in gone}
    new = dict(zip(steps.step[unended].tolist(), steps.t_ns[unended].tolist(), strict=True))
    return replace(
        notes,
        largest_step=max(notes.largest_step, int(steps.step.max())),
        open_steps=dict([*kept.items(), *new.items()][-_MOST_OPEN:]),
        started_ns=_latest(notes.started_ns, steps.t_ns[begun]),
        finished_ns=_latest(notes.finished_ns, steps.t_ns[ended]),
    )


def _latest(before_ns: int | None, t_ns: NDArray[np.int64]) -> int | None:
    """The latest of what was known before and of what came."""
    known = [before_ns] if before_ns is not None else []
    return max([*known, *([int(t_ns.max())] if len(t_ns) else [])], default=None)
