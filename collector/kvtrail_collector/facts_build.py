"""From rows to everything that can be asked of them: columns of facts, ops and steps, and the facts of single requests."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, overload

import numpy as np
import pyarrow as pa
from kvtrail_schema.enums import Reason, Tier
from kvtrail_schema.events import Event
from kvtrail_schema.identity import OpId, RequestId, Seq, Stream
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts import Chunk, Lookup, Op, RequestFacts, State, StateChange, Timeline, Wait
from kvtrail_collector.facts_columns import END_KINDS, NOT_THERE, UNNAMED, FactColumns, fact_columns
from kvtrail_collector.facts_ops import OpColumns, op_columns, op_struct
from kvtrail_collector.facts_rows import NO_ID, IntArray, Interval, Rows, rows_of_events, rows_of_table
from kvtrail_collector.facts_steps import StepColumns, step_columns, timelines
from kvtrail_collector.ledger_axis import bounds_of
from kvtrail_collector.recorded import Arrival

_STATES: Final = {
    Kind.REQUEST_WAITING: State.WAITING,
    Kind.REQUEST_ADMITTED: State.ADMITTED,
    Kind.REQUEST_PREEMPTED: State.PREEMPTED,
    Kind.REQUEST_RESUMED: State.ADMITTED,
}
_REASONS: Final = {reason.value: reason for reason in Reason}


@dataclass(frozen=True)
class Recording:
    """Everything that was recorded, ready to be asked: rows, ops, steps, and the facts of all requests as columns."""

    rows: Rows
    ops: OpColumns
    steps: StepColumns
    timelines: tuple[Timeline, ...]
    columns: FactColumns

    @cached_property
    def requests(self) -> "Requests":
        """The facts of each request, in the order of arrival. One is made when it is asked for: about 0.1 ms each."""
        return Requests(self)

    def op(self, place: int) -> Op:
        """One op as a struct."""
        return op_struct(self.ops, place)

    def facts(self, places: Sequence[int]) -> tuple[RequestFacts, ...]:
        """The facts of some requests."""
        return tuple(self.requests[place] for place in places)

    def ops_of(self, places: Sequence[int]) -> IntArray:
        """The places of the ops that are joined to some requests, request after request."""
        return self.columns.ops_of(np.array(places, dtype=np.int64))

    def arrivals(self, places: Sequence[int]) -> list[Arrival]:
        """The events that some requests began with."""
        requests = self.columns.requests
        rows = [(place, int(requests.row[place])) for place in places]
        return [
            Arrival(int(self.rows.stream[row]), int(self.rows.seq[row]), int(requests.req[place]), self.rows.text[row] or None)
            for place, row in rows
        ]

    def evicted(self, span: Interval, tier: Tier) -> int:
        """How many copies left a tier in [start, end)."""
        rows = self.rows
        gone = rows.of_kinds(Kind.EVICTED)
        gone = gone[(rows.t_ns[gone] >= span[0]) & (rows.t_ns[gone] < span[1])]
        return int((rows.ints["tier"][gone] == tier).sum())

    def find(self, request: RequestId) -> RequestFacts | None:
        """The facts of the latest request of this number, or None where its arrival is not among the rows."""
        places = np.flatnonzero(self.columns.requests.req == np.uint64(request))
        return self.requests[int(places[-1])] if len(places) else None


def recording_of_table(
    table: pa.Table, holes: dict[Stream, list[Interval]] | None = None, *, now_ns: int | None = None
) -> Recording:
    """Facts of all requests that arrive in a table. About a microsecond a row.

    For a table that is only a selection of the stored rows, `holes` replaces what its own seqs say, and `now_ns` is the
    latest time that is known of its streams.
    """
    return recording_of_rows(rows_of_table(table, holes), now_ns)


def recording_of_events(events: Iterable[Event], stream: Stream | None = None) -> Recording:
    """Facts of all requests that arrive among the events of one stream."""
    return recording_of_rows(rows_of_events(events, stream))


def facts_of(events: Iterable[Event], request: RequestId, stream: Stream | None = None) -> RequestFacts | None:
    """The facts of one request, or None where its arrival is not among the events."""
    return recording_of_events(events, stream).find(request)


def recording_of_rows(rows: Rows, now_ns: int | None = None) -> Recording:
    """Facts, ops and steps of rows."""
    return recording_of_parts(rows, op_columns(rows), now_ns)


def recording_of_parts(rows: Rows, ops: OpColumns, now_ns: int | None = None) -> Recording:
    """As `recording_of_rows`, where the transfers are known; the rows need not have theirs."""
    steps = step_columns(rows)
    lines = tuple(timelines(rows, steps, now_ns))
    return Recording(rows, ops, steps, lines, fact_columns(rows, ops, steps, lines))


class Requests(Sequence[RequestFacts]):
    """The facts of each request of a recording, made when they are asked for. Used by one thread."""

    def __init__(self, recording: Recording) -> None:
        self._rows, self._ops, self._columns = recording.rows, recording.ops, recording.columns
        columns, count = self._columns, len(self._columns.requests)
        grouped = (columns.states.request, columns.lookups.request, columns.waits.request, columns.chunks.request)
        self._bounds = [bounds_of(request, count) for request in (*grouped, columns.own_request)]

    def __len__(self) -> int:
        """How many requests arrived."""
        return len(self._columns.requests)

    @overload
    def __getitem__(self, index: int) -> RequestFacts: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[RequestFacts, ...]: ...

    def __getitem__(self, index: int | slice) -> RequestFacts | tuple[RequestFacts, ...]:
        """The facts of one request, or of a slice of them."""
        if isinstance(index, slice):
            return tuple(self._facts(place) for place in range(*index.indices(len(self))))
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self._facts(index % len(self))

    def __iter__(self) -> Iterator[RequestFacts]:
        """The facts of all requests, in turn."""
        return (self._facts(place) for place in range(len(self)))

    def _facts(self, place: int) -> RequestFacts:
        """The facts of one request."""
        requests, rows = self._columns.requests, self._rows
        row = int(requests.row[place])
        own = self._own_ops(place)
        waits, shared = self._waits(place, set(own))
        return RequestFacts(
            request=RequestId(int(requests.req[place])),
            text=rows.text[row],
            ns=requests.namespace(place),
            tokens=int(requests.tokens[place]),
            arrived_seq=Seq(int(rows.seq[row])),
            arrived_ns=int(requests.arrived_ns[place]),
            end_ns=int(requests.end_ns[place]),
            end=END_KINDS[int(requests.end[place])],
            states=self._states(place),
            lookups=self._lookups(place),
            ops=tuple(op_struct(self._ops, op) for op in own),
            chunks=self._chunks(place),
            waits=waits,
            timeline=self._columns.timelines[int(requests.stream[place])],
            shared_ops=shared,
        )

    def _span(self, group: int, place: int) -> slice:
        """Where the facts of one request stand among those of a group."""
        return slice(int(self._bounds[group][place]), int(self._bounds[group][place + 1]))

    def _own_ops(self, place: int) -> list[int]:
        """The places of the ops of one request."""
        return _list(self._columns.own_op[self._span(4, place)])

    def _states(self, place: int) -> tuple[StateChange, ...]:
        """Its changes of state."""
        states, own = self._columns.states, self._span(0, place)
        told = zip(_list(states.t_ns[own]), _list(states.kind[own]), _list(states.reason[own]), strict=True)
        return tuple(StateChange(t_ns, _STATES[Kind(kind)], _REASONS.get(reason)) for t_ns, kind, reason in told)

    def _lookups(self, place: int) -> tuple[Lookup, ...]:
        """Its lookups."""
        lookups, own = self._columns.lookups, self._span(1, place)
        return tuple(map(Lookup._make, zip(_list(lookups.start_ns[own]), _list(lookups.end_ns[own]), strict=True)))

    def _waits(self, place: int, own_ops: set[int]) -> tuple[tuple[Wait, ...], tuple[Op, ...]]:
        """Its explicit waits, and the ops that they name though others began them."""
        waits, own = self._columns.waits, self._span(2, place)
        named = _list(waits.op[own])
        ids = [self._named(op) for op in named]
        spans = zip(_list(waits.start_ns[own]), _list(waits.end_ns[own]), ids, strict=True)
        shared = sorted({op for op in named if op >= 0} - own_ops)
        return tuple(map(Wait._make, spans)), tuple(op_struct(self._ops, op) for op in shared)

    def _named(self, op: int) -> OpId | None:
        """The id of an op that a wait names; one that has no rows is named by an id that no op has."""
        if op == UNNAMED:
            return None
        return OpId(int(NO_ID)) if op == NOT_THERE else OpId(int(self._ops.op[op]))

    def _chunks(self, place: int) -> tuple[Chunk, ...]:
        """Its prefill chunks."""
        chunks, own = self._columns.chunks, self._span(3, place)
        columns = (chunks.start_ns, chunks.end_ns, chunks.tokens, chunks.reason, chunks.known)
        told = zip(*(column[own].tolist() for column in columns), strict=True)
        return tuple(Chunk(start, end, tokens, _prefill_reason(why), sure) for start, end, tokens, why, sure in told)


def _list(column: IntArray) -> list[int]:
    """The numbers of a column."""
    numbers: list[int] = column.tolist()
    return numbers


def _prefill_reason(number: int) -> Reason:
    """The reason of a chunk; one that this version does not know counts as new."""
    return _REASONS.get(number, Reason.NEW)
