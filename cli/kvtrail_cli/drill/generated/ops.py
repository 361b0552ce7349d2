"""The transfers of a population: reads that requests wait for, what is fetched ahead, writes, and a neighbour's floods."""

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from kvtrail_collector.facts_rows import BoolArray, IntArray
from kvtrail_schema.enums import Tier

from kvtrail_cli.drill.generated.load import NEIGHBOUR, Load, least_cached
from kvtrail_cli.drill.generated.mechanism import MS, Flood, Scene, Span
from kvtrail_cli.drill.generated.queues import served
from kvtrail_cli.drill.generated.recorded import BLOCK_TOKENS, Recorded

OP_BLOCKS: Final = 16
PAUSE_EVERY_NS: Final = 1_500 * MS
TIMEOUT_NS: Final = 150 * MS
_SAVED_AFTER_NS: Final = 60 * MS
_DEMOTED_AFTER_NS: Final = 3_000 * MS
_HOST_WRITE_NS: Final = 2 * MS
NOBODY: Final = -1


@dataclass(frozen=True, slots=True)
class Ops:
    """One element an op. `request` is whose it is, `used_by` who used what it fetched ahead."""

    tier: IntArray
    is_read: BoolArray
    is_ahead: BoolArray
    request: IntArray
    used_by: IntArray
    tenant: IntArray
    blocks: IntArray
    queued_ns: IntArray
    service_ns: IntArray
    is_failed: BoolArray
    started_ns: IntArray

    def __len__(self) -> int:
        """How many."""
        return len(self.tier)

    @property
    def closing_ns(self) -> IntArray:
        """When each ends."""
        return self.started_ns + self.service_ns

    @property
    def waiter(self) -> IntArray:
        """The request that may wait for each."""
        return np.where(self.request == NOBODY, self.used_by, self.request)


@dataclass(frozen=True, slots=True)
class _Sort:
    """What ops of one sort have in common."""

    tier: Tier
    is_read: bool
    is_ahead: bool = False


def _ops(sort: _Sort, owner: IntArray, tenant: IntArray, blocks: IntArray, queued_ns: IntArray) -> Ops:
    """Ops of one sort, not served yet."""
    count = len(queued_ns)
    nobody = np.full(count, NOBODY)
    return Ops(
        tier=np.full(count, int(sort.tier)),
        is_read=np.full(count, sort.is_read),
        is_ahead=np.full(count, sort.is_ahead),
        request=nobody if sort.is_ahead else owner,
        used_by=owner if sort.is_ahead else nobody,
        tenant=tenant,
        blocks=blocks,
        queued_ns=queued_ns,
        service_ns=np.zeros(count, dtype=np.int64),
        is_failed=np.zeros(count, dtype=np.bool_),
        started_ns=queued_ns,
    )


def joined(parts: list[Ops]) -> Ops:
    """All of them."""
    return Ops(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Ops)))


def split(tokens: IntArray) -> tuple[IntArray, IntArray]:
    """Ops of at most sixteen blocks: the request of each, and its blocks."""
    blocks = -(-tokens // BLOCK_TOKENS)
    count = -(-blocks // OP_BLOCKS)
    owner = np.repeat(np.arange(len(tokens)), count)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    return owner, np.minimum(blocks[owner] - place * OP_BLOCKS, OP_BLOCKS)


class OpMaker:
    """Makes the ops of one scene, and lets each tier serve its own. Used once."""

    def __init__(self, scene: Scene, recorded: Recorded, rng: np.random.Generator) -> None:
        self._scene, self._recorded, self._rng = scene, recorded, rng
        self._slow = Tier.REMOTE if scene.world.is_remote else Tier.NVME

    def make(self, load: Load, looked_ns: IntArray) -> Ops:
        """All ops, served, in the order of being queued."""
        wanted = joined([*self._reads(load, looked_ns), *self._writes(load), *self._floods()])
        parts = []
        for tier in (Tier.HOST, self._slow):
            own = _chosen(wanted, wanted.tier == tier)
            parts.append(self._serve(own, tier))
        return joined(parts)

    def _reads(self, load: Load, looked_ns: IntArray) -> list[Ops]:
        """From host, from below it, and what was fetched ahead from there."""
        owner, blocks = split(load.host_tokens)
        host = _ops(_Sort(Tier.HOST, is_read=True), owner, load.tenant[owner], blocks, looked_ns[owner])
        ahead = self._rng.random(len(load)) < self._scene.world.prefetched
        owner, blocks = split(np.where(ahead, 0, load.nvme_tokens))
        demand = _ops(_Sort(self._slow, is_read=True), owner, load.tenant[owner], blocks, looked_ns[owner])
        owner, blocks = split(np.where(ahead, load.nvme_tokens, 0))
        lead = self._lead_ns(load.arrived_ns[owner])
        early = _ops(
            _Sort(self._slow, is_read=True, is_ahead=True), owner, load.tenant[owner], blocks, load.arrived_ns[owner] - lead
        )
        return [host, demand, early]

    def _lead_ns(self, arrived_ns: IntArray) -> IntArray:
        """How long before its request each prefetch is issued."""
        scene, usual = self._scene, self._scene.world.lead_ns
        if scene.mechanism.lead_ns is None or scene.span is None:
            return np.full(len(arrived_ns), usual)
        return np.where(scene.span.has(arrived_ns), scene.mechanism.lead_ns, usual)

    def _writes(self, load: Load) -> list[Ops]:
        """New blocks go to host once they are computed, and below it some seconds later."""
        unkept = (load.tenant == NEIGHBOUR) | (load.tenant == least_cached(load))
        owner, blocks = split(np.where(unkept, 0, load.computed_tokens))
        at_ns = load.arrived_ns[owner]
        host = _ops(_Sort(Tier.HOST, is_read=False), owner, load.tenant[owner], blocks, at_ns + _SAVED_AFTER_NS)
        nobody = np.full(len(owner), NOBODY)
        down = _ops(_Sort(self._slow, is_read=False), nobody, load.tenant[owner], blocks, at_ns + _DEMOTED_AFTER_NS)
        return [host, down]

    def _floods(self) -> list[Ops]:
        """The neighbour's bursts."""
        scene = self._scene
        return [] if scene.span is None else [self._flood(flood, scene.span) for flood in scene.mechanism.floods]

    def _flood(self, flood: Flood, span: Span) -> Ops:
        """Bursts of one kind."""
        at_ns = np.repeat(span.every(flood.every_ns), flood.burst_ops)
        nobody, one = np.full(len(at_ns), NOBODY), np.ones(len(at_ns), dtype=np.int64)
        sort = _Sort(self._slow, is_read=flood.kind != "write", is_ahead=flood.kind == "prefetch")
        return _ops(sort, nobody, one * NEIGHBOUR, one, at_ns)

    def _serve(self, ops: Ops, tier: Tier) -> Ops:
        """Service times, failures, and the queue of one tier."""
        ordered = _chosen(ops, np.argsort(ops.queued_ns, kind="stable"))
        failed = self._paused(ordered) if tier is Tier.REMOTE else np.zeros(len(ordered), dtype=np.bool_)
        service_ns = np.where(failed, TIMEOUT_NS, self._service_ns(ordered, tier))
        below = self._scene.world.nvme_workers or self._recorded.nvme_workers
        workers = self._recorded.host_workers if tier is Tier.HOST else below
        started_ns = served(ordered.queued_ns, service_ns, workers)
        known = {field.name: getattr(ordered, field.name) for field in fields(Ops)}
        return Ops(**{**known, "service_ns": service_ns, "is_failed": failed, "started_ns": started_ns})

    def _paused(self, ops: Ops) -> BoolArray:
        """Reads that came while the remote did not answer."""
        scene = self._scene
        if scene.span is None or not scene.mechanism.pause_ns:
            return np.zeros(len(ops), dtype=np.bool_)
        since = (ops.queued_ns - scene.span.start_ns) % PAUSE_EVERY_NS
        return np.asarray(scene.span.has(ops.queued_ns) & (since < scene.mechanism.pause_ns) & ops.is_read)

    def _service_ns(self, ops: Ops, tier: Tier) -> IntArray:
        """How long the device takes for each, broken or not."""
        recorded, scene = self._recorded, self._scene
        if tier is Tier.HOST:
            read = draws(recorded.host_read_ns, len(ops), self._rng) + ops.blocks * recorded.host_read_block_ns
            write: IntArray | int = _HOST_WRITE_NS
            factor = scene.mechanism.host_factor
        else:
            read = draws(recorded.nvme_read_ns, len(ops), self._rng) + ops.blocks * recorded.nvme_read_block_ns
            read = (read * scene.world.nvme_factor).astype(np.int64)
            write = draws(recorded.nvme_write_ns, len(ops), self._rng)
            factor = scene.mechanism.nvme_factor
        struck = np.zeros(len(ops), dtype=np.bool_) if scene.span is None else scene.span.has(ops.queued_ns)
        slowed = np.where(struck, (read * factor).astype(np.int64), read)
        return np.asarray(np.maximum(np.where(ops.is_read, slowed, write), 1), dtype=np.int64)


def draws(curve: list[int], count: int, rng: np.random.Generator) -> IntArray:
    """Values from a distribution that is given by its quantiles."""
    return np.interp(rng.random(count), np.linspace(0, 1, len(curve)), curve).astype(np.int64)


def _chosen(ops: Ops, which: BoolArray | IntArray) -> Ops:
    """Some of them."""
    return Ops(*(getattr(ops, field.name)[which] for field in fields(Ops)))
