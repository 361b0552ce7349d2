"""The facts of all requests as columns: the input of the ledger of many requests at once (LEDGER §1).

Requests stand in the order of arrival; other columns name theirs by that place. Rows of requests that did not arrive
are left out. What one request's facts are as an object, `facts.py` says; both are built from the same rows.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from kvtrail_schema.identity import NamespaceId
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts import EndKind, Timeline
from kvtrail_collector.facts_chunks import chunk_spans
from kvtrail_collector.facts_join import RequestIndex, find_ops, joined_ops, request_index
from kvtrail_collector.facts_ops import OpColumns
from kvtrail_collector.facts_rows import NO_ID, BoolArray, IdArray, IntArray, Rows
from kvtrail_collector.facts_steps import StepColumns
from kvtrail_collector.ledger_axis import expanded

END_KINDS: Final = (EndKind.FIRST_TOKEN, EndKind.FINISHED, EndKind.CANCELLED, EndKind.REJECTED, EndKind.RUNNING)
"""What the numbers in `RequestColumns.end` mean."""

UNNAMED: Final = -1
"""A wait that names no op."""
NOT_THERE: Final = -2
"""A wait that names an op of which there is no row."""

_NEVER: Final = np.int64(2**63 - 1)
_MOST_NS: Final = 2**62
"""What all requests may take together: their ledgers lie on one line of whole numbers of 64 bits."""
_STATES: Final = (Kind.REQUEST_WAITING, Kind.REQUEST_ADMITTED, Kind.REQUEST_PREEMPTED, Kind.REQUEST_RESUMED)
_SIGNS: Final = (*_STATES, Kind.LOOKUP_FINISHED, Kind.PREFILL_CHUNK, Kind.COPY_WAITED)
"""What a request does until its first token, and every reader of the store reads."""
_ADMITTED: Final = np.array([Kind.REQUEST_ADMITTED, Kind.REQUEST_RESUMED], dtype=np.int64)
_ENDS: Final = {
    Kind.REQUEST_FINISHED: EndKind.FINISHED,
    Kind.REQUEST_CANCELLED: EndKind.CANCELLED,
    Kind.REQUEST_REJECTED: EndKind.REJECTED,
}


@dataclass(frozen=True, slots=True)
class RequestColumns:
    """Requests: whose they are, when they came, and how and when their interval ended. `row` is that of the arrival."""

    row: IntArray
    stream: IntArray
    req: IdArray
    ns: IdArray
    tokens: IntArray
    arrived_ns: IntArray
    end_ns: IntArray
    end: IntArray

    def __len__(self) -> int:
        """How many."""
        return len(self.row)

    @property
    def censored(self) -> BoolArray:
        """Those of which no first token was seen."""
        return np.asarray(self.end != 0)

    def namespace(self, place: int) -> NamespaceId | None:
        """The namespace of one request."""
        return None if self.ns[place] == NO_ID else NamespaceId(int(self.ns[place]))


@dataclass(frozen=True, slots=True)
class StateColumns:
    """Changes of state, by request and time, and of several at one time as they were told."""

    request: IntArray
    t_ns: IntArray
    kind: IntArray
    reason: IntArray

    @property
    def admitted(self) -> BoolArray:
        """Changes to being admitted."""
        return np.isin(self.kind, _ADMITTED)


@dataclass(frozen=True, slots=True)
class SpanColumns:
    """Intervals of requests."""

    request: IntArray
    start_ns: IntArray
    end_ns: IntArray


@dataclass(frozen=True, slots=True)
class WaitColumns:
    """Waits for copies; `op` is a place among the ops, `UNNAMED`, or `NOT_THERE`."""

    request: IntArray
    start_ns: IntArray
    end_ns: IntArray
    op: IntArray


@dataclass(frozen=True, slots=True)
class ChunkColumns:
    """Prefill chunks with the intervals of their steps; `known` where the start of the step is."""

    request: IntArray
    start_ns: IntArray
    end_ns: IntArray
    tokens: IntArray
    reason: IntArray
    known: BoolArray
    step: IdArray


@dataclass(frozen=True, slots=True)
class FactColumns:
    """All facts of all requests. `own_request` and `own_op` are pairs, sorted: the ops joined to each request."""

    requests: RequestColumns
    states: StateColumns
    lookups: SpanColumns
    waits: WaitColumns
    chunks: ChunkColumns
    own_request: IntArray
    own_op: IntArray
    ops: OpColumns
    timelines: tuple[Timeline, ...]
    index: RequestIndex

    def ops_of(self, requests: IntArray) -> IntArray:
        """The places of the ops that are joined to some requests, request after request."""
        low = np.searchsorted(self.own_request, requests, side="left")
        high = np.searchsorted(self.own_request, requests, side="right")
        return np.asarray(self.own_op[expanded(low, high - low)[1]])


def fact_columns(rows: Rows, ops: OpColumns, steps: StepColumns, timelines: tuple[Timeline, ...]) -> FactColumns:
    """Facts of all requests that arrive among some rows. Pure; about a microsecond a row that has to do with requests."""
    arrivals, index = request_index(rows)
    own_request, own_op = joined_ops(rows, ops, index)
    return FactColumns(
        requests=_requests(rows, arrivals, index, timelines),
        states=_states(rows, index),
        lookups=lookup_columns(rows, index),
        waits=_waits(rows, index, ops),
        chunks=chunk_columns(rows, index, steps),
        own_request=own_request,
        own_op=own_op,
        ops=ops,
        timelines=timelines,
        index=index,
    )


def _of_requests(rows: Rows, index: RequestIndex, *kinds: Kind) -> tuple[IntArray, IntArray]:
    """Rows of these kinds of requests that arrived, by request, and their requests."""
    places = rows.of_kinds(*kinds)
    request = index.find(rows.stream[places], rows.ids["req"][places])
    order = np.argsort(request, kind="stable")
    order = order[np.searchsorted(request[order], 0) :]
    return places[order], request[order]


def _requests(rows: Rows, arrivals: IntArray, index: RequestIndex, timelines: tuple[Timeline, ...]) -> RequestColumns:
    """When requests came and ended: at the first token, else at the first end, else they run as long as that is known.

    An end behind a hole ends nothing: the first token may lie in the hole, and the time until then is all that is known.
    """
    arrived, stream = rows.t_ns[arrivals], rows.stream[arrivals]
    known = _known_until(rows, index, arrived, stream, timelines)
    end_ns, end = known, np.full(len(arrivals), 4, dtype=np.int64)
    for kind, found in _ends(rows, index, len(arrivals)):
        there = (found != _NEVER) & ((kind == 0) | (kind == _REJECTED) | (found <= known))
        end_ns, end = np.where(there, found, end_ns), np.where(there, kind, end)
    return RequestColumns(
        row=arrivals,
        stream=stream,
        req=rows.ids["req"][arrivals],
        ns=rows.ids["ns"][arrivals],
        tokens=rows.ints["tokens"][arrivals],
        arrived_ns=arrived,
        end_ns=arrived + np.minimum(np.maximum(end_ns - arrived, 0), _MOST_NS // max(len(arrivals), 1)),
        end=end,
    )


def _known_until(
    rows: Rows, index: RequestIndex, arrived: IntArray, stream: IntArray, timelines: tuple[Timeline, ...]
) -> IntArray:
    """Until when each request is known to run, where nothing ends it: until now, or a hole after its last sign of life.

    What ended it may be in that hole; to let it run on would make a request that was answered the slowest of all.
    """
    until, seen = arrived.copy(), arrived.copy()
    places, request = _of_requests(rows, index, *_SIGNS)
    np.maximum.at(seen, request, rows.t_ns[places])
    for place, line in enumerate(timelines):
        own = np.flatnonzero(stream == place)
        starts, ends = np.array([*line.holes, (line.last_ns, line.last_ns)], dtype=np.int64).T
        first = np.minimum(np.searchsorted(ends, seen[own], side="right"), len(line.holes))
        until[own] = np.maximum(starts[first], seen[own])
    return until


def _ends(rows: Rows, index: RequestIndex, requests: int) -> list[tuple[IntArray | int, IntArray]]:
    """Kind and time of what ends requests, the weaker first; a time is never where there is no such end."""
    places, request = _of_requests(rows, index, *_ENDS)
    order = np.lexsort((rows.t_ns[places], request))
    request, places = request[order], places[order]
    first = np.concatenate([[True], request[1:] != request[:-1]])[: len(request)]
    ended, kinds = np.full(requests, _NEVER), np.zeros(requests, dtype=np.int64)
    ended[request[first]] = rows.t_ns[places[first]]
    kinds[request[first]] = _END_PLACES[rows.kind[places[first]]]
    tokens = np.full(requests, _NEVER)
    places, request = _of_requests(rows, index, Kind.REQUEST_FIRST_TOKEN)
    np.minimum.at(tokens, request, rows.t_ns[places])
    return [(kinds, ended), (0, tokens)]


_REJECTED: Final = END_KINDS.index(EndKind.REJECTED)
_END_PLACES: Final = np.zeros(max(Kind) + 1, dtype=np.int64)
for _kind, _end in _ENDS.items():
    _END_PLACES[_kind] = END_KINDS.index(_end)


def _states(rows: Rows, index: RequestIndex) -> StateColumns:
    """Changes of state."""
    places, request = _of_requests(rows, index, *_STATES)
    order = np.lexsort((rows.t_ns[places], request))
    places, request = places[order], request[order]
    return StateColumns(request, rows.t_ns[places], rows.kind[places], rows.ints["reason"][places])


def lookup_columns(rows: Rows, index: RequestIndex) -> SpanColumns:
    """Lookups, which are told when they end."""
    places, request = _of_requests(rows, index, Kind.LOOKUP_FINISHED)
    end = rows.t_ns[places]
    return SpanColumns(request, end - np.maximum(rows.ints["duration_ns"][places], 0), end)


def _waits(rows: Rows, index: RequestIndex, ops: OpColumns) -> WaitColumns:
    """Waits for copies, which are told when they end."""
    places, request = _of_requests(rows, index, Kind.COPY_WAITED)
    end, named = rows.t_ns[places], rows.ids["op"][places]
    found = find_ops(ops, rows.stream[places], named)
    op = np.where(named == NO_ID, UNNAMED, np.where(found < 0, NOT_THERE, found))
    return WaitColumns(request, end - np.maximum(rows.ints["wait_ns"][places], 0), end, op)


def chunk_columns(rows: Rows, index: RequestIndex, steps: StepColumns) -> ChunkColumns:
    """Prefill chunks."""
    places, request = _of_requests(rows, index, Kind.PREFILL_CHUNK)
    start, end, known = chunk_spans(rows, steps, places)
    tokens = np.maximum(rows.ints["tokens"][places], 0)
    return ChunkColumns(request, start, end, tokens, rows.ints["reason"][places], known, rows.ids["step"][places])
