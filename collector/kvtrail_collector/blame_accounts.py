"""Blame by account: which queue, whose work and of which kind the waits of some ops were behind."""

import json
from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property
from typing import Final

import numpy as np
from kvtrail_schema.identity import NamespaceId, RequestId
from kvtrail_schema.kinds import Kind

from kvtrail_collector.attribution_shapes import BlameRow
from kvtrail_collector.blame import Spans, charge
from kvtrail_collector.blame_charges import NO_OP, Charged, queue_key, queues_of
from kvtrail_collector.facts import Direction, Op
from kvtrail_collector.facts_join import find_ops, request_values
from kvtrail_collector.facts_rows import NO_ID, NO_INT, IdArray, IntArray
from kvtrail_collector.ledger_parts import TIER_NAMES
from kvtrail_collector.recorded import Recorded

Account = tuple[str, str | None, str]


class WorkKind(StrEnum):
    """What sort of work an op was."""

    DEMAND = "demand"
    PREFETCH_USED = "prefetch_used"
    PREFETCH_WASTED = "prefetch_wasted"
    PREFETCH_PENDING = "prefetch_pending"
    WRITE_BACK = "write_back"
    IDLE = "idle"


_KINDS: Final = tuple(WorkKind)
_PLACES: Final = {kind: place for place, kind in enumerate(_KINDS)}


class Blame:
    """Answers who kept whom waiting in one recording. Built once for it; used by one thread."""

    def __init__(self, recording: Recorded) -> None:
        self._recording = recording

    @cached_property
    def _waits(self) -> Spans:
        """When each op stood in its queue; until now if it never left it."""
        ops = self._recording.ops
        left = np.minimum(ops.queued_ns + ops.parts_ns[:, 0], ops.closing_ns)
        left = np.where(ops.closing_ns == NO_INT, self._now_ns, left)
        return Spans(ops.queued_ns, np.where(ops.started_ns == NO_INT, left, ops.started_ns))

    @cached_property
    def _services(self) -> Spans:
        """When each op was in service; until now if it still is."""
        closing = self._recording.ops.closing_ns
        return Spans(self._waits.end_ns, np.where(closing == NO_INT, self._now_ns, closing))

    @cached_property
    def _now_ns(self) -> IntArray:
        """The last moment that is known of each op's stream; of no interest where all ops have ended."""
        ops = self._recording.ops
        if not (ops.closing_ns == NO_INT).any():
            return ops.queued_ns
        return np.array([line.last_ns for line in self._recording.timelines], dtype=np.int64)[ops.stream]

    @cached_property
    def _queues(self) -> IntArray:
        """The queue of each op, as a number."""
        return queues_of(self._recording.ops)

    @cached_property
    def tenants(self) -> dict[int, str]:
        """The tenant of each declared namespace, as it was declared: hashed."""
        rows = self._recording.rows
        places = rows.of_kinds(Kind.NAMESPACE_DECLARED)
        texts = zip(rows.ids["ns"][places].tolist(), rows.text[places].tolist(), strict=True)
        return {ns: _tenant(ns, text) for ns, text in texts}

    @cached_property
    def _outcomes(self) -> dict[tuple[int, int], WorkKind]:
        """What became of each prefetch: used if any block of it was."""
        rows, found = self._recording.rows, {}
        wasted = rows.of_kinds(Kind.PREFETCH_WASTED, Kind.PREFETCH_CANCELLED)
        for kind, places in ((WorkKind.PREFETCH_WASTED, wasted), (WorkKind.PREFETCH_USED, rows.of_kinds(Kind.PREFETCH_USED))):
            for key in zip(rows.stream[places].tolist(), rows.ids["prefetch"][places].tolist(), strict=True):
                found[key] = kind
        return found

    def tenant_of(self, stream: int, ns: NamespaceId | None, req: RequestId | None) -> str | None:
        """The tenant of an op or request: by its namespace, else by that of its request."""
        if ns is not None:
            return self._name(ns)
        if req is None:
            return None
        return self._name(int(self._namespaces(np.array([stream]), np.array([req], dtype=np.uint64))[0]))

    def _name(self, ns: int) -> str | None:
        """The tenant of a namespace."""
        return None if ns == int(NO_ID) else self.tenants.get(ns, f"{ns:016x}")

    def _namespaces(self, stream: IntArray, req: IdArray) -> IdArray:
        """The namespace of each request that arrived with one."""
        requests = self._recording.columns.requests
        return request_values(requests.stream, requests.req, requests.ns, stream, req)

    def kind_of(self, op: Op) -> WorkKind:
        """What sort of work an op is."""
        if op.direction is Direction.STORE:
            return WorkKind.WRITE_BACK
        if op.prefetch is None:
            return WorkKind.DEMAND
        return self._outcomes.get((op.stream, op.prefetch), WorkKind.PREFETCH_PENDING)

    def blamed(self, victims: Iterable[Op]) -> Charged:
        """What the waits of these ops are charged to, largest first. Charged = waited, exactly."""
        named = list(victims)
        stream = np.array([op.stream for op in named], dtype=np.int64)
        return self.blamed_at(find_ops(self._recording.ops, stream, np.array([op.op for op in named], dtype=np.uint64)))

    def blamed_at(self, places: IntArray) -> Charged:
        """As `blamed`, for ops at some places."""
        queues = self._queues[places]
        parts = [part for queue in np.unique(queues).tolist() for part in self._of_queue(queue, places[queues == queue])]
        return Charged.of(self._recording.ops, parts)

    def _of_queue(self, queue: int, victims: IntArray) -> list[tuple[int, IntArray, IntArray]]:
        """What the waits in one queue are charged to: ops in the order of their ids, then nobody."""
        own = np.flatnonzero(self._queues == queue)
        own = own[np.argsort(self._recording.ops.op[own], kind="stable")]
        charges = charge(self._waits.chosen(victims), self._services.chosen(own))
        charged = np.flatnonzero(charges.services_ns)
        found = [(queue, own[charged], charges.services_ns[charged])]
        return [*found, (queue, np.array([NO_OP]), np.array([charges.idle_ns]))] if charges.idle_ns else found

    def rows(self, blamed: Charged) -> tuple[BlameRow, ...]:
        """Charges added up by queue, tenant and kind, largest first."""
        total = blamed.total_ns
        sums: dict[Account, int] = {}
        for queue, ns, kind, charged in _grouped(blamed.queue, self._spaces_of(blamed), self._kinds_of(blamed), blamed.ns):
            key = self._queue_name(queue), self._name(ns), _KINDS[kind].value
            sums[key] = sums.get(key, 0) + charged
        ranked = sorted(sums.items(), key=lambda item: (-item[1], item[0][0], item[0][1] or "", item[0][2]))
        return tuple(BlameRow(queue, tenant, kind, ns, ns / total) for (queue, tenant, kind), ns in ranked)

    def _queue_name(self, number: int) -> str:
        """What people call a queue."""
        key = queue_key(number)
        stream, own = self._recording.rows.streams[key.stream], "" if key.queue == NO_INT else f"#{key.queue}"
        return f"{stream.engine}/{stream.rank}/{TIER_NAMES[key.tier]}{own}"

    def _spaces_of(self, blamed: Charged) -> IdArray:
        """Whose work each charge is: the namespace of its op, else of the op's request."""
        ops, real = blamed.ops, blamed.op != NO_OP
        spaces = np.where(real, ops.ns[blamed.op], NO_ID) if len(ops.op) else np.full(len(blamed), NO_ID)
        asked = np.flatnonzero(real & (spaces == NO_ID))
        own = blamed.op[asked]
        spaces[asked] = self._namespaces(ops.stream[own], ops.req[own])
        return spaces

    def _kinds_of(self, blamed: Charged) -> IntArray:
        """The place of each charge's kind of work among all."""
        ops, own = blamed.ops, np.flatnonzero(blamed.op != NO_OP)
        op = blamed.op[own]
        kinds = np.full(len(blamed), _PLACES[WorkKind.IDLE])
        kinds[own] = np.where(ops.load[op] == 1, _PLACES[WorkKind.DEMAND], _PLACES[WorkKind.WRITE_BACK])
        ahead = np.flatnonzero((ops.load[op] == 1) & (ops.prefetch[op] != NO_ID))
        pairs = zip(ops.stream[op[ahead]].tolist(), ops.prefetch[op[ahead]].tolist(), strict=True)
        kinds[own[ahead]] = [_PLACES[self._outcomes.get(pair, WorkKind.PREFETCH_PENDING)] for pair in pairs]
        return kinds


def _grouped(queue: IntArray, space: IdArray, kind: IntArray, ns: IntArray) -> Iterable[tuple[int, int, int, int]]:
    """Charges added up by queue, namespace and kind of work."""
    if not len(ns):
        return []
    order = np.lexsort((kind, space, queue))
    queue, space, kind = queue[order], space[order], kind[order]
    differs = (queue[1:] != queue[:-1]) | (space[1:] != space[:-1]) | (kind[1:] != kind[:-1])
    first = np.concatenate([[0], np.flatnonzero(differs) + 1])
    sums = np.add.reduceat(ns[order], first)
    return zip(queue[first].tolist(), space[first].tolist(), kind[first].tolist(), sums.tolist(), strict=True)


def _tenant(ns: int, text: str | None) -> str:
    """The tenant in the text of a namespace; the namespace itself where it names none."""
    try:
        members = json.loads(text or "{}")
    except json.JSONDecodeError:
        members = {}
    tenant = members.get("tenant") if isinstance(members, dict) else None
    return tenant if isinstance(tenant, str) else f"{ns:016x}"
