"""Rows of transfers grouped to ops: one hop of one transfer each, its durations counted once (EVENTS §3)."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import NamespaceId, OpId, PrefetchId, RequestId, Seq
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts import Direction, Op, OpEnd
from kvtrail_collector.facts_rows import NO_ID, NO_INT, IdArray, IntArray, Rows

_QUEUED: Final = (Kind.SWAP_IN_QUEUED, Kind.SWAP_OUT_QUEUED)
_STARTED: Final = (Kind.SWAP_IN_STARTED, Kind.SWAP_OUT_STARTED)
_DONE: Final = (Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN)
_FAILED: Final = (Kind.SWAP_IN_FAILED, Kind.SWAP_OUT_FAILED)
_SKIPPED: Final = (Kind.SWAP_OUT_SKIPPED,)
_LOADS: Final = (Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_STARTED, Kind.SWAP_IN_LOADED, Kind.SWAP_IN_FAILED)
_PARTS: Final = ("queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns")
_NEVER: Final = np.int64(2**63 - 1)


@dataclass(frozen=True, slots=True)
class OpColumns:
    """All ops of some rows, one element an op, sorted by (stream, op id). Absent values as in `Rows`."""

    stream: IntArray
    op: IdArray
    load: IntArray
    src: IntArray
    dst: IntArray
    queued_ns: IntArray
    started_ns: IntArray
    closing_ns: IntArray
    parts_ns: IntArray
    bytes: IntArray
    req: IdArray
    prefetch: IdArray
    ns: IdArray
    queue: IntArray
    end: IntArray
    seq: IdArray

    @property
    def tier(self) -> IntArray:
        """The slower end of each op."""
        return np.maximum(self.src, self.dst)

    @property
    def service_ns(self) -> IntArray:
        """How long the device worked for each op: its io and copy."""
        return self.parts_ns[:, 3] + self.parts_ns[:, 4]

    @property
    def service_start_ns(self) -> IntArray:
        """When each op went into service; for one that never did, `NO_INT`."""
        derived = np.where(self.closing_ns != NO_INT, self.queued_ns + self.parts_ns[:, 0], NO_INT)
        return np.where(self.started_ns != NO_INT, self.started_ns, derived)


_ENDS: Final = (OpEnd.OPEN, OpEnd.DONE, OpEnd.FAILED, OpEnd.SKIPPED)


def op_columns(rows: Rows) -> OpColumns:
    """Group the transfer rows to ops; rows between tiers that this version does not know are left out."""
    places = rows.of_kinds(*_QUEUED, *_STARTED, *_DONE, *_FAILED, *_SKIPPED)
    src, dst = rows.ints["src"][places], rows.ints["dst"][places]
    places = places[(np.minimum(src, dst) >= 0) & (np.maximum(src, dst) < len(Tier))]
    order = np.lexsort((rows.seq[places], rows.ids["op"][places], rows.stream[places]))
    return _Groups(rows, places[order]).columns()


class _Groups:
    """Transfer rows sorted by (stream, op, seq), with the borders between ops."""

    def __init__(self, rows: Rows, places: IntArray) -> None:
        op, stream = rows.ids["op"][places], rows.stream[places]
        new = np.ones(len(places), dtype=bool)
        new[1:] = (op[1:] != op[:-1]) | (stream[1:] != stream[:-1])
        self.rows, self.places = rows, places
        self.starts = np.flatnonzero(new)
        self.kind, self.t_ns = rows.kind[places], rows.t_ns[places]
        self.closing = self._is(*_DONE, *_FAILED, *_SKIPPED)

    def _is(self, *kinds: Kind) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which rows are of these kinds."""
        return np.isin(self.kind, np.array(kinds, dtype=np.int64))

    def columns(self) -> OpColumns:
        """One element an op."""
        first = self.places[self.starts]
        if not len(first):
            return _no_ops()
        parts = self._parts()
        closing = self._latest(self.closing)
        started = self._earliest(self._is(*_STARTED))
        queued = self._queued(closing, started, parts)
        inferred = (parts[:, 0] == NO_INT) & (started != NO_INT)
        parts[:, 0] = np.where(inferred, np.maximum(started - queued, 0), parts[:, 0])
        return OpColumns(
            stream=self.rows.stream[first],
            op=self.rows.ids["op"][first],
            load=np.isin(self.rows.kind[first], np.array(_LOADS, dtype=np.int64)).astype(np.int64),
            src=self.rows.ints["src"][first],
            dst=self.rows.ints["dst"][first],
            queued_ns=queued,
            started_ns=started,
            closing_ns=closing,
            parts_ns=np.maximum(parts, 0),
            bytes=self._bytes(),
            req=self._first_id("req"),
            prefetch=self._first_id("prefetch"),
            ns=self._first_id("ns"),
            queue=np.maximum.reduceat(self.rows.ints["queue"][self.places], self.starts),
            end=self._ends(),
            seq=self._seq(),
        )

    def _earliest(self, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> IntArray:
        """The first time of the chosen rows of each op."""
        found = np.minimum.reduceat(np.where(mask, self.t_ns, _NEVER), self.starts)
        return np.where(found == _NEVER, NO_INT, found)

    def _latest(self, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> IntArray:
        """The last time of the chosen rows of each op."""
        found = np.maximum.reduceat(np.where(mask, self.t_ns, -_NEVER), self.starts)
        return np.where(found == -_NEVER, NO_INT, found)

    def _parts(self) -> IntArray:
        """The six parts, from the lowest closing row that has any: they stand once for an op."""
        values = np.stack([self.rows.ints[name][self.places] for name in _PARTS], axis=1)
        bearing = self.closing & (values != NO_INT).any(axis=1)
        row = np.minimum.reduceat(np.where(bearing, np.arange(len(self.places)), len(self.places)), self.starts)
        padded = np.concatenate([values, np.full((1, len(_PARTS)), NO_INT, dtype=np.int64)])
        return padded[row]

    def _queued(self, closing: IntArray, started: IntArray, parts: IntArray) -> IntArray:
        """When each op was queued; where that row is missing, what its parts leave, or its first sign of life."""
        queued = self._earliest(self._is(*_QUEUED))
        total = np.maximum(parts, 0).sum(axis=1)
        backwards = np.where((closing != NO_INT) & (total > 0), closing - total, NO_INT)
        first = np.minimum.reduceat(self.t_ns, self.starts)
        inferred = np.where(backwards != NO_INT, backwards, np.where(started != NO_INT, started, first))
        return np.where(queued != NO_INT, queued, inferred)

    def _bytes(self) -> IntArray:
        """The sum over closing rows, else over the queued ones."""
        sizes = np.maximum(self.rows.ints["bytes"][self.places], 0)
        closed = np.add.reduceat(np.where(self.closing, sizes, 0), self.starts)
        asked = np.add.reduceat(np.where(self._is(*_QUEUED), sizes, 0), self.starts)
        return np.where(closed > 0, closed, asked)

    def _first_id(self, name: str) -> IdArray:
        """The id that the rows of each op state; absent where none does."""
        return np.asarray(np.minimum.reduceat(self.rows.ids[name][self.places], self.starts), dtype=np.uint64)

    def _ends(self) -> IntArray:
        """An index into `_ENDS` for each op; the worst of its rows' ends."""
        worst = np.zeros(len(self.starts), dtype=np.int64)
        for index, kinds in ((3, _SKIPPED), (1, _DONE), (2, _FAILED)):
            worst = np.where(np.logical_or.reduceat(self._is(*kinds), self.starts), index, worst)
        return worst

    def _seq(self) -> IdArray:
        """The seq of the row that bears the parts: the first closing one, else the first."""
        seq = self.rows.seq[self.places]
        closing = np.minimum.reduceat(np.where(self.closing, seq, NO_ID), self.starts)
        return np.where(closing == NO_ID, seq[self.starts], closing)


def _no_ops() -> OpColumns:
    """Columns without an element."""
    ids, ints = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    return OpColumns(
        stream=ints,
        op=ids,
        load=ints,
        src=ints,
        dst=ints,
        queued_ns=ints,
        started_ns=ints,
        closing_ns=ints,
        parts_ns=np.zeros((0, len(_PARTS)), dtype=np.int64),
        bytes=ints,
        req=ids,
        prefetch=ids,
        ns=ids,
        queue=ints,
        end=ints,
        seq=ids,
    )


def op_structs(ops: OpColumns, places: IntArray) -> list[Op]:
    """Some ops as structs. About a microsecond each."""
    columns = (
        *(ops.op, ops.stream, ops.load, ops.src, ops.dst, ops.end, ops.queued_ns, ops.started_ns, ops.closing_ns),
        *(ops.parts_ns[:, part] for part in range(len(_PARTS))),
        *(ops.bytes, ops.req, ops.prefetch, ops.ns, ops.queue, ops.seq),
    )
    return [_struct(*values) for values in zip(*(column[places].tolist() for column in columns), strict=True)]


def op_struct(ops: OpColumns, place: int) -> Op:
    """One op as a struct."""
    return op_structs(ops, np.array([place]))[0]


_TIERS: Final = tuple(Tier)
_DIRECTIONS: Final = (Direction.STORE, Direction.LOAD)
_ABSENT: Final = int(NO_ID)


def _struct(  # noqa: PLR0917 - one row of columns, in their order
    op: int,
    stream: int,
    load: int,
    src: int,
    dst: int,
    end: int,
    queued: int,
    started: int,
    closing: int,
    queue_ns: int,
    alloc_ns: int,
    submit_ns: int,
    io_ns: int,
    copy_ns: int,
    sync_ns: int,
    size: int,
    req: int,
    prefetch: int,
    ns: int,
    queue: int,
    seq: int,
) -> Op:
    """One op from one element of each column."""
    return Op(
        OpId(op),
        stream,
        _DIRECTIONS[load],
        _TIERS[src],
        _TIERS[dst],
        _ENDS[end],
        queued,
        None if started < 0 else started,
        None if closing < 0 else closing,
        queue_ns,
        alloc_ns,
        submit_ns,
        io_ns,
        copy_ns,
        sync_ns,
        size,
        None if req == _ABSENT else RequestId(req),
        None if prefetch == _ABSENT else PrefetchId(prefetch),
        None if ns == _ABSENT else NamespaceId(ns),
        None if queue < 0 else queue,
        Seq(seq),
    )
