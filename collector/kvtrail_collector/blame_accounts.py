"""Blame by account: which queue, whose work and of which kind the waits of some ops were behind."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import NamespaceId, OpId, RequestId
from kvtrail_schema.kinds import Kind

from kvtrail_collector.attribution_shapes import BlameRow
from kvtrail_collector.blame import QueueWait, Service, charge
from kvtrail_collector.facts import Direction, Op
from kvtrail_collector.facts_build import Recording
from kvtrail_collector.facts_ops import op_structs
from kvtrail_collector.facts_rows import NO_ID, NO_INT
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


def queue_of(op: Op) -> QueueKey:
    """The queue that an op stands in."""
    return QueueKey(op.stream, op.tier, NO_INT if op.queue is None else op.queue)


def wait_of(op: Op, now_ns: int) -> QueueWait:
    """When an op stood in its queue; until now if it never left it."""
    if op.started_ns is not None:
        return QueueWait(op.queued_ns, op.started_ns)
    left = now_ns if op.closing_ns is None else min(op.queued_ns + op.queue_ns, op.closing_ns)
    return QueueWait(op.queued_ns, left)


class Blame:
    """Answers who kept whom waiting in one recording. Built once for it; used by one thread."""

    def __init__(self, recording: Recording) -> None:
        self._recording, self._ops = recording, op_structs(recording.ops, np.arange(len(recording.ops.op)))

    @cached_property
    def _services(self) -> dict[QueueKey, list[Service]]:
        """When each op was in service, by queue."""
        found: dict[QueueKey, list[Service]] = {}
        for op in self._ops:
            end = self.now_ns(op) if op.closing_ns is None else op.closing_ns
            start = wait_of(op, end).end_ns
            found.setdefault(queue_of(op), []).append(Service(start, end, op.op))
        return found

    @cached_property
    def _by_id(self) -> dict[tuple[int, OpId], Op]:
        """Ops by stream and id."""
        return {(op.stream, op.op): op for op in self._ops}

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

    def now_ns(self, op: Op) -> int:
        """The last moment that is known of an op's stream."""
        return self._recording.timelines[op.stream].last_ns

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
        waits: dict[QueueKey, list[QueueWait]] = {}
        for op in victims:
            waits.setdefault(queue_of(op), []).append(wait_of(op, self.now_ns(op)))
        found = [item for key, own in waits.items() for item in self._of_queue(key, own)]
        return sorted(found, key=lambda item: -item.ns)

    def _of_queue(self, key: QueueKey, waits: list[QueueWait]) -> list[Blamed]:
        """What the waits in one queue are charged to."""
        charges = charge(waits, self._services.get(key, []))
        return [Blamed(key, None if op is None else self._by_id[key.stream, op], ns) for op, ns in charges.items() if ns]

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
