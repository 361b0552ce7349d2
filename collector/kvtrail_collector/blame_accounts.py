"""Blame by account: which queue, whose work and of which kind the waits of some ops were behind."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

import numpy as np
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import NamespaceId, RequestId
from kvtrail_schema.kinds import Kind

from kvtrail_collector.attribution_shapes import BlameRow
from kvtrail_collector.blame import Spans, charge
from kvtrail_collector.facts import Direction, Op
from kvtrail_collector.facts_build import Recording
from kvtrail_collector.facts_join import find_ops
from kvtrail_collector.facts_ops import op_structs
from kvtrail_collector.facts_rows import NO_ID, NO_INT, IntArray
from kvtrail_collector.ledger_parts import TIER_NAMES

Account = tuple[str, str | None, str]


class WorkKind(StrEnum):
    """What sort of work an op was."""

    DEMAND = "demand"
    PREFETCH_USED = "prefetch_used"
    PREFETCH_WASTED = "prefetch_wasted"
    PREFETCH_PENDING = "prefetch_pending"
    WRITE_BACK = "write_back"
    IDLE = "idle"


@dataclass(frozen=True, slots=True, order=True)
class QueueKey:
    """One queue: of a tier in a stream, or the engine's own where it names one (-1: it does not)."""

    stream: int
    tier: Tier
    queue: int


@dataclass(frozen=True, slots=True)
class Blamed:
    """An op (None: nobody, the queue was idle) and what was charged to it."""

    key: QueueKey
    op: Op | None
    ns: int


class Blame:
    """Answers who kept whom waiting in one recording. Built once for it; used by one thread."""

    def __init__(self, recording: Recording) -> None:
        self._recording, self._ops = recording, recording.ops

    @cached_property
    def _waits(self) -> Spans:
        """When each op stood in its queue; until now if it never left it."""
        ops, now = self._ops, self._now_ns
        left = np.where(ops.closing_ns == NO_INT, now, np.minimum(ops.queued_ns + ops.parts_ns[:, 0], ops.closing_ns))
        return Spans(ops.queued_ns, np.where(ops.started_ns == NO_INT, left, ops.started_ns))

    @cached_property
    def _services(self) -> Spans:
        """When each op was in service; until now if it still is."""
        return Spans(self._waits.end_ns, np.where(self._ops.closing_ns == NO_INT, self._now_ns, self._ops.closing_ns))

    @cached_property
    def _now_ns(self) -> IntArray:
        """The last moment that is known of each op's stream."""
        last = np.array([line.last_ns for line in self._recording.timelines], dtype=np.int64)
        return last[self._ops.stream] if len(last) else self._ops.queued_ns

    @cached_property
    def _queues(self) -> IntArray:
        """The queue of each op, as a number."""
        ops = self._ops
        return np.asarray((ops.stream * len(Tier) + ops.tier) * _QUEUES + ops.queue + 1)

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

    @cached_property
    def _namespaces(self) -> dict[tuple[int, int], int]:
        """The namespace of each request that arrived with one."""
        rows = self._recording.rows
        places = rows.of_kinds(Kind.REQUEST_ARRIVED)
        columns = (rows.stream[places], rows.ids["req"][places], rows.ids["ns"][places])
        return {(stream, req): ns for stream, req, ns in zip(*(column.tolist() for column in columns), strict=True)}

    def tenant_of(self, stream: int, ns: NamespaceId | None, req: RequestId | None) -> str | None:
        """The tenant of an op or request: by its namespace, else by that of its request."""
        key = ns if ns is not None else self._namespaces.get((stream, req if req is not None else NO_INT))
        return None if key is None or key == int(NO_ID) else self.tenants.get(key, f"{key:016x}")

    def kind_of(self, op: Op) -> WorkKind:
        """What sort of work an op is."""
        if op.direction is Direction.STORE:
            return WorkKind.WRITE_BACK
        if op.prefetch is None:
            return WorkKind.DEMAND
        return self._outcomes.get((op.stream, op.prefetch), WorkKind.PREFETCH_PENDING)

    def blamed(self, victims: Iterable[Op]) -> list[Blamed]:
        """What the waits of these ops are charged to, largest first. Charged = waited, exactly."""
        named = list(victims)
        stream = np.array([op.stream for op in named], dtype=np.int64)
        places = find_ops(self._ops, stream, np.array([op.op for op in named], dtype=np.uint64))
        queues = self._queues[places]
        found = [item for queue in np.unique(queues).tolist() for item in self._of_queue(queue, places[queues == queue])]
        return sorted(found, key=lambda item: -item.ns)

    def _of_queue(self, queue: int, victims: IntArray) -> list[Blamed]:
        """What the waits in one queue are charged to: ops in the order of their ids, or nobody."""
        own = np.flatnonzero(self._queues == queue)
        own = own[np.argsort(self._ops.op[own], kind="stable")]
        charges = charge(self._waits.chosen(victims), self._services.chosen(own))
        key = QueueKey(*_queue_of(queue))
        charged = np.flatnonzero(charges.services_ns)
        ops = op_structs(self._ops, own[charged])
        found = [Blamed(key, op, ns) for op, ns in zip(ops, charges.services_ns[charged].tolist(), strict=True)]
        return [*found, Blamed(key, None, charges.idle_ns)] if charges.idle_ns else found

    def rows(self, blamed: Sequence[Blamed]) -> tuple[BlameRow, ...]:
        """Charges added up by queue, tenant and kind, largest first."""
        total = sum(item.ns for item in blamed)
        sums = _sums(blamed, self._account)
        ranked = sorted(sums.items(), key=lambda item: (-item[1], item[0][0], item[0][1] or "", item[0][2]))
        return tuple(BlameRow(queue, tenant, kind, ns, ns / total) for (queue, tenant, kind), ns in ranked)

    def _account(self, item: Blamed) -> tuple[str, str | None, str]:
        """Queue, tenant and kind that a charge belongs to."""
        stream = self._recording.rows.streams[item.key.stream]
        own = "" if item.key.queue == NO_INT else f"#{item.key.queue}"
        queue = f"{stream.engine}/{stream.rank}/{TIER_NAMES[item.key.tier]}{own}"
        if item.op is None:
            return queue, None, WorkKind.IDLE.value
        return queue, self.tenant_of(item.op.stream, item.op.ns, item.op.req), self.kind_of(item.op).value


_QUEUES: Final = 1 << 17
"""More than there are numbers of engines' own queues."""


def _queue_of(number: int) -> tuple[int, Tier, int]:
    """Stream, tier and the engine's own queue behind the number of one."""
    place, own = divmod(number, _QUEUES)
    stream, tier = divmod(place, len(Tier))
    return stream, Tier(tier), own - 1


def _sums(blamed: Sequence[Blamed], account: Callable[[Blamed], Account]) -> Mapping[Account, int]:
    """Charges added up by account."""
    sums: dict[Account, int] = {}
    for item in blamed:
        key = account(item)
        sums[key] = sums.get(key, 0) + item.ns
    return sums


def _tenant(ns: int, text: str | None) -> str:
    """The tenant in the text of a namespace; the namespace itself where it names none."""
    try:
        members = json.loads(text or "{}")
    except json.JSONDecodeError:
        members = {}
    tenant = members.get("tenant") if isinstance(members, dict) else None
    return tenant if isinstance(tenant, str) else f"{ns:016x}"
