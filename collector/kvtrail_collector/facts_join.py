"""Which rows and ops belong to which request: joins by sorted keys."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts_ops import OpColumns
from kvtrail_collector.facts_rows import NO_ID, IdArray, IntArray, Rows

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Slices:
    """Places of rows grouped by request: those of request i stand at [bounds[i], bounds[i + 1])."""

    places: IntArray
    bounds: list[int]
    listed: list[int] = field(default_factory=list)

    def of(self, values: Sequence[T], request: int) -> Sequence[T]:
        """The values of one request, from a list that is parallel to `places`."""
        return values[self.bounds[request] : self.bounds[request + 1]]


@dataclass(frozen=True, slots=True)
class RequestIndex:
    """Finds requests by (stream, id). `codes` are all ids of requests, `keys` the sorted keys of those that arrived."""

    codes: IdArray
    keys: IntArray

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
        return np.where(known & (self.keys[place] == key), place, -1)

    def slices(self, rows: Rows, places: IntArray) -> Slices:
        """Group rows by their request, those of one request in the order of seq."""
        request = self.find(rows.stream[places], rows.ids["req"][places])
        return grouped(places, request, len(self.keys))


def grouped(values: IntArray, request: IntArray, requests: int) -> Slices:
    """Values grouped by request, in their order; those of no request are left out."""
    order = np.argsort(request, kind="stable")
    order = order[request[order] >= 0]
    bounds = np.searchsorted(request[order], np.arange(requests + 1)).tolist()
    return Slices(values[order], bounds, values[order].tolist())


def request_index(rows: Rows) -> tuple[IntArray, RequestIndex]:
    """The place of the (first) arrival of each request, sorted by (stream, id), and the index over them."""
    places = rows.of_kinds(Kind.REQUEST_ARRIVED)
    req, stream = rows.ids["req"][places], rows.stream[places]
    codes = np.unique(req)
    keys, first = np.unique(stream * np.int64(max(len(codes), 1)) + np.searchsorted(codes, req), return_index=True)
    return places[first], RequestIndex(codes, keys)


def joined_ops(rows: Rows, ops: OpColumns, index: RequestIndex) -> Slices:
    """The ops of each request: those that name it, and those of a prefetch that it used."""
    by_name = index.find(ops.stream, ops.req)
    used_op, used_by = _used_prefetches(rows, ops, index)
    op = np.concatenate([np.arange(len(ops.op)), used_op])
    request = np.concatenate([by_name, used_by])
    pairs = np.unique(np.stack([request, op], axis=1), axis=0) if len(op) else np.zeros((0, 2), dtype=np.int64)
    return grouped(pairs[:, 1], pairs[:, 0], len(index.keys))


def named_ops(rows: Rows, ops: OpColumns, index: RequestIndex) -> Slices:
    """The ops that the waits of each request name, whoever began them."""
    places = rows.of_kinds(Kind.COPY_WAITED)
    places = places[rows.ids["op"][places] != NO_ID]
    codes = np.unique(ops.op)
    width = np.int64(len(codes) + 1)
    have = ops.stream * width + np.searchsorted(codes, ops.op)
    named = rows.ids["op"][places]
    want = rows.stream[places] * width + np.searchsorted(codes, named)
    order = np.argsort(have, kind="stable")
    place = np.minimum(np.searchsorted(have[order], want), max(len(have) - 1, 0))
    found = order[place] if len(have) else np.zeros(len(places), dtype=np.int64)
    there = (ops.op[found] == named) & (ops.stream[found] == rows.stream[places]) if len(have) else np.zeros(0, dtype=bool)
    request = index.find(rows.stream[places], rows.ids["req"][places])
    pairs = np.unique(np.stack([request[there], found[there]], axis=1), axis=0) if there.any() else np.zeros((0, 2), np.int64)
    return grouped(pairs[:, 1], pairs[:, 0], len(index.keys))


def _used_prefetches(rows: Rows, ops: OpColumns, index: RequestIndex) -> tuple[IntArray, IntArray]:
    """Pairs (op, request) in which the request used a prefetch that the op served."""
    places = rows.of_kinds(Kind.PREFETCH_USED)
    request = index.find(rows.stream[places], rows.ids["req"][places])
    uses = np.unique(np.stack([rows.stream[places], rows.ids["prefetch"][places].view(np.int64), request], axis=1), axis=0)
    serving = np.flatnonzero(ops.prefetch != NO_ID)
    codes = np.unique(np.concatenate([ops.prefetch[serving], uses[:, 1].astype(np.int64).view(np.uint64)]))
    width = np.int64(len(codes) + 1)
    have = ops.stream[serving] * width + np.searchsorted(codes, ops.prefetch[serving])
    want = uses[:, 0] * width + np.searchsorted(codes, np.ascontiguousarray(uses[:, 1]).view(np.uint64))
    order = np.argsort(have, kind="stable")
    low, high = np.searchsorted(have[order], want, "left"), np.searchsorted(have[order], want, "right")
    counts = high - low
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return serving[order[np.repeat(low, counts) + offsets]], np.repeat(uses[:, 2], counts)
