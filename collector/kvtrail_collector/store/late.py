"""Rows that come late: transfers and steps of a commit that may change ledgers which are kept, or computed just now.

A ledger hangs on rows that do not name its request: steps of its stream, and transfers that it waited for or whose
prefetch it used. Rows of a request touch it by themselves (`touched.py`); here is the rest. What a row changes begins
where its transfer or step begins; so rows of transfers and steps that began behind all kept ledgers change none, which a
look at the notes of the stream shows (`reach.py`). Of the others, transfers are put down, and whoever computes or reads
finds out whose they are; steps touch all requests that lived between the steps beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from kvtrail_schema.kinds import Kind
from numpy.typing import NDArray

from kvtrail_collector.store.late_ops import LATE_OPS, TOUCH_OPS
from kvtrail_collector.store.late_steps import LateSteps, Steps, after_steps, late_steps
from kvtrail_collector.store.reach import Notes, Reach

_STEP_STARTED, _STEP_FINISHED, _QUEUED, _MOVED = 1, 2, 3, 4
_GROUPS: Final = np.zeros(2**16, dtype=np.uint8)
_GROUPS[[Kind.STEP_STARTED]] = _STEP_STARTED
_GROUPS[[Kind.STEP_FINISHED]] = _STEP_FINISHED
_GROUPS[[Kind.SWAP_IN_QUEUED, Kind.SWAP_OUT_QUEUED]] = _QUEUED
_GROUPS[[Kind.SWAP_IN_STARTED, Kind.SWAP_IN_LOADED, Kind.SWAP_IN_FAILED]] = _MOVED
_GROUPS[[Kind.SWAP_OUT_STARTED, Kind.SWAP_OUT_WRITTEN, Kind.SWAP_OUT_FAILED, Kind.SWAP_OUT_SKIPPED]] = _MOVED

_SURELY: Final = 2**63 - 1
_NO_ID: Final = 2**64 - 1
_OPS: Final = pa.schema([("stream_id", pa.int32()), ("op", pa.uint64()), ("kept_ns", pa.int64())])

Ids = NDArray[np.uint64]
Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Late:
    """What a commit has to do beside its rows: transfers to ask the tables about, steps that are late, and new notes."""

    ops: pa.Table
    steps: tuple[LateSteps, ...]
    notes: Mapping[int, Notes]

    def touch(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Touch what they may change. In the transaction of the rows, behind them and the projections."""
        if self.ops.num_rows:
            connection.register(LATE_OPS, self.ops)
            try:
                connection.execute(TOUCH_OPS)
            finally:
                connection.unregister(LATE_OPS)
        for steps in self.steps:
            connection.execute(steps.touch())


NOTHING_LATE: Final = Late(_OPS.empty_table(), (), {})


def find_late(rows: pa.Table, reach: Reach) -> Late:
    """What of the rows of a commit may be late. Pure; one look at each row's kind, and at the ids of transfers and steps."""
    kept_ns = reach.kept_ns()
    ops: list[pa.Table] = []
    steps: list[LateSteps] = []
    notes: dict[int, Notes] = {}
    for stream_id, own in _by_stream(rows):
        before, moved, stepped = reach.notes(stream_id), own.ops(), own.steps()
        if stream_id in kept_ns:
            ops.append(_late_ops(stream_id, moved, before.largest_op, kept_ns[stream_id]))
            steps += late_steps(stream_id, stepped, before, kept_ns[stream_id])
        largest = max(before.largest_op, int(moved.op.max()) if len(moved.op) else -1)
        notes[stream_id] = replace(after_steps(before, stepped), largest_op=largest)
    return Late(pa.concat_tables(ops) if ops else _OPS.empty_table(), tuple(steps), notes)


class _Moves(NamedTuple):
    """Rows of transfers and steps; of those of steps `op` is absent, of the others `step`."""

    group: NDArray[np.uint8]
    t_ns: Times
    op: Ids
    step: Ids

    def chosen(self, mask: NDArray[np.bool_]) -> _Moves:
        """Some of them."""
        return _Moves(self.group[mask], self.t_ns[mask], self.op[mask], self.step[mask])

    def ops(self) -> _Moves:
        """The rows of transfers; those without an id are left out, as nothing can hang on them."""
        return self.chosen((self.group >= _QUEUED) & (self.op != _NO_ID))

    def steps(self) -> Steps:
        """The rows of steps."""
        own = self.group <= _STEP_FINISHED
        return Steps(self.step[own], self.t_ns[own], self.group[own] == _STEP_STARTED)


def _by_stream(rows: pa.Table) -> list[tuple[int, _Moves]]:
    """The rows of transfers and steps, stream by stream."""
    groups = _GROUPS[rows["kind"].to_numpy()]
    places = np.flatnonzero(groups)
    streams = rows["stream_id"].to_numpy()[places]
    moves = _Moves(groups[places], rows["t_ns"].to_numpy()[places], _ids(rows["op"])[places], _ids(rows["step"])[places])
    found = np.unique(streams).tolist()
    return [(stream_id, moves if len(found) == 1 else moves.chosen(streams == stream_id)) for stream_id in found]


def _ids(column: pa.ChunkedArray[Any]) -> Ids:
    """A column of ids; one that is absent is the largest number there is."""
    return column.fill_null(pa.scalar(_NO_ID, pa.uint64())).to_numpy()


def _late_ops(stream_id: int, moves: _Moves, largest_op: int, kept_ns: int) -> pa.Table:
    """Transfers with a row before what is kept ends, and those whose beginning is not among the rows.

    The tables know when the latter began. Ids mostly count up: one that is larger than all before is surely new.
    """
    queued = moves.group == _QUEUED
    early = np.unique(moves.op[moves.t_ns < kept_ns])
    older = moves.op[moves.op <= np.uint64(largest_op)] if largest_op >= 0 else moves.op[:0]
    unqueued = moves.op[~queued][~np.isin(moves.op[~queued], moves.op[queued])]
    asked = np.setdiff1d(np.concatenate([older, unqueued]), early)
    until = np.concatenate([np.full(len(early), _SURELY), np.full(len(asked), kept_ns)])
    columns = {"op": np.concatenate([early, asked]), "kept_ns": until}
    return pa.table({"stream_id": np.full(len(until), stream_id, dtype=np.int32), **columns}, schema=_OPS)
