"""Which rows and ops belong to which request: joins by sorted keys."""

from dataclasses import dataclass

import numpy as np
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts_ops import OpColumns
from kvtrail_collector.facts_rows import NO_ID, IdArray, IntArray, Rows
from kvtrail_collector.ledger_axis import distinct, expanded


@dataclass(frozen=True, slots=True)
class RequestIndex:
    """Finds requests by (stream, id). `codes` are all ids of requests, `keys` the sorted keys of those that arrived.

    `numbers` has, for each key, the place of its request in the order of arrival.
    """

    codes: IdArray
    keys: IntArray
    numbers: IntArray

    def find(self, stream: IntArray, req: IdArray) -> IntArray:
        """The number of each request in the order of arrival rows; -1 for one that did not arrive here."""
        code = np.searchsorted(self.codes, req)
        known = (
            (code < len(self.codes)) & (self.codes[np.minimum(code, len(self.codes) - 1)] == req) if len(self.codes) else None
        )
        if known is None:
            return np.full(len(req), -1, dtype=np.int64)
        key = stream * np.int64(len(self.codes)) + code
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where(known & (self.keys[place] == key), self.numbers[place], -1)


def request_index(rows: Rows) -> tuple[IntArray, RequestIndex]:
    """The place of the (first) arrival of each request, in the order of arrival, and the index over them."""
    places = rows.of_kinds(Kind.REQUEST_ARRIVED)
    req, stream = rows.ids["req"][places], rows.stream[places]
    codes, keys, first = _keyed(stream, req)
    order = np.lexsort((req[first], rows.t_ns[places[first]]))
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.arange(len(order))
    return places[first][order], RequestIndex(codes, keys, numbers)


def index_of(stream: IntArray, req: IdArray) -> RequestIndex:
    """An index over requests, each of which is there once: it finds their places."""
    codes, keys, first = _keyed(stream, req)
    return RequestIndex(codes, keys, first)


def _keyed(stream: IntArray, req: IdArray) -> tuple[IdArray, IntArray, IntArray]:
    """All ids, the sorted keys of pairs of a stream and an id, and where each first stands."""
    codes = np.unique(req)
    keys, first = np.unique(stream * np.int64(max(len(codes), 1)) + np.searchsorted(codes, req), return_index=True)
    return codes, keys, first


def request_values(stream: IntArray, req: IdArray, values: IdArray, of_stream: IntArray, of_req: IdArray) -> IdArray:
    """The value of each wanted request (`of_stream`, `of_req`) among all, `NO_ID` for one that is not there."""
    codes, wanted = np.unique(of_req, return_inverse=True)
    streams = int(max(stream.max(initial=-1), of_stream.max(initial=-1))) + 1
    found = np.full(streams * len(codes), NO_ID)
    code = np.searchsorted(codes, req)
    there = code < len(codes)
    there[there] = codes[code[there]] == req[there]
    found[stream[there] * len(codes) + code[there]] = values[there]
    return np.asarray(found[of_stream * len(codes) + wanted])


def distinct_pairs(request: IntArray, op: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs of a request and an op, sorted, each once; those of no request are left out."""
    known = request >= 0
    width = np.int64(op.max() + 1) if len(op) else np.int64(1)
    keys = distinct(request[known] * width + op[known])
    return keys // width, keys % width


def joined_ops(rows: Rows, ops: OpColumns, index: RequestIndex) -> tuple[IntArray, IntArray]:
    """The ops of each request: those that name it, and those of a prefetch that it used. Pairs, sorted."""
    by_name = index.find(ops.stream, ops.req)
    used_op, used_by = _used_prefetches(rows, ops, index)
    return distinct_pairs(np.concatenate([by_name, used_by]), np.concatenate([np.arange(len(ops.op)), used_op]))


def find_ops(ops: OpColumns, stream: IntArray, op: IdArray) -> IntArray:
    """The place of each wanted op; -1 for one that is not there. A few look-ups among the ops of each stream."""
    found = np.full(len(op), -1, dtype=np.int64)
    for home in np.unique(stream).tolist():
        low, high = np.searchsorted(ops.stream, [home, home + 1]).tolist()
        wanted = np.flatnonzero(stream == home)
        place = low + np.searchsorted(ops.op[low:high], op[wanted])
        there = place < high
        there[there] = ops.op[place[there]] == op[wanted][there]
        found[wanted[there]] = place[there]
    return found


def _used_prefetches(rows: Rows, ops: OpColumns, index: RequestIndex) -> tuple[IntArray, IntArray]:
    """Pairs (op, request) in which the request used a prefetch that the op served."""
    places = rows.of_kinds(Kind.PREFETCH_USED)
    request = index.find(rows.stream[places], rows.ids["req"][places])
    used, stream = rows.ids["prefetch"][places], rows.stream[places]
    serving = np.flatnonzero(ops.prefetch != NO_ID)
    codes = np.unique(np.concatenate([ops.prefetch[serving], used]))
    width = np.int64(len(codes) + 1)
    have = ops.stream[serving] * width + np.searchsorted(codes, ops.prefetch[serving])
    want = stream * width + np.searchsorted(codes, used)
    order = np.argsort(have, kind="stable")
    low = np.searchsorted(have[order], want, "left")
    of, found = expanded(low, np.searchsorted(have[order], want, "right") - low)
    return serving[order[found]], request[of]
