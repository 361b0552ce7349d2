"""A guest tenant with a quota of its own: blocks that it once stored on nvme, and now reads into host or writes anew in bulk.

Its ops go through the queue, the workers and the files of everybody, and are told like everybody's.
"""

from dataclasses import dataclass

import torch
from kvtrail_schema.enums import Dtype, Tier
from kvtrail_schema.identity import PrefetchId, RequestId, Slot, block_id
from kvtrail_schema.reasons import EvictReason, PrefetchWasteReason

from kvtrail_engine.engine import Engine
from kvtrail_engine.prefetch_book import Issued
from kvtrail_engine.tiers.pool import Block, Copy, CopyState
from kvtrail_engine.tiers.transfer import Row, Transfer, TransferOutcome


@dataclass(frozen=True, slots=True)
class _Wanted:
    """On whose behalf an op is made, and whether it is fetched ahead."""

    req: RequestId
    prefetch: PrefetchId | None = None


class Guest:
    """Lives on the engine's thread. Slot i of its quota holds its block i, on nvme as a rule and on host while it is read."""

    def __init__(self, engine: Engine, tenant: str) -> None:
        self._engine = engine
        self._context = engine.context
        self._blocks = self._make_blocks(tenant)
        self._host: dict[int, Copy] = {}
        self._nvme: dict[int, Copy] = {}
        self._busy: set[int] = set()
        self._next = 0

    def store(self, req: RequestId) -> None:
        """Create every block on host, and write it to nvme, one op a block."""
        host, settings = self._engine.host_arena, self._context.settings
        generator = torch.Generator().manual_seed(settings.seed)
        for index, block in enumerate(self._blocks):
            copy = Copy(block, Tier.HOST, self._slot(Tier.HOST, index), CopyState.READY, self._context.clock.now_ns())
            host.data[copy.slot].normal_(generator=generator)
            self._host[index] = copy
            size = settings.block_bytes
            self._context.emit.block_created(
                block.id,
                Tier.HOST,
                copy.slot,
                block.ns,
                req=req,
                tokens=block.tokens,
                token_start=0,
                bytes=size,
                dtype=Dtype.FP32,
            )
            target = Copy(block, Tier.NVME, self._slot(Tier.NVME, index), CopyState.LOADING, copy.used_ns)
            self._queue(index, copy, target, _Wanted(req))

    def read(self, ops: int, req: RequestId) -> int:
        """Queue reads of so many of its blocks, round and round, one op a block; how many were queued."""
        return sum(self._read(index, _Wanted(req)) for index in self._turn(ops) if index in self._nvme)

    def prefetch(self, ops: int, req: RequestId) -> int:
        """As `read`, ahead of a need that never comes: each ends wasted."""
        ids = self._context.ids
        return sum(self._read(index, _Wanted(req, ids.prefetch())) for index in self._turn(ops) if index in self._nvme)

    def write(self, ops: int, req: RequestId) -> int:
        """Queue writes to nvme of so many of its blocks that lie on host; how many were queued."""
        return sum(self._write(index, _Wanted(req)) for index in self._turn(ops) if index in self._host)

    def _turn(self, ops: int) -> list[int]:
        """The next blocks whose turn it is, those left out that an op moves already."""
        count = min(ops, len(self._blocks))
        turn = [(self._next + place) % len(self._blocks) for place in range(count)]
        self._next = (self._next + count) % len(self._blocks)
        return [index for index in turn if index not in self._busy]

    def _read(self, index: int, wanted: _Wanted) -> bool:
        """One op from nvme to host."""
        source = self._nvme[index]
        self._leave(self._host, index)
        now_ns = self._context.clock.now_ns()
        target = Copy(source.block, Tier.HOST, self._slot(Tier.HOST, index), CopyState.LOADING, now_ns)
        return self._queue(index, source, target, wanted)

    def _write(self, index: int, wanted: _Wanted) -> bool:
        """One op from host to nvme, in place of what lies there."""
        source = self._host[index]
        self._leave(self._nvme, index)
        now_ns = self._context.clock.now_ns()
        target = Copy(source.block, Tier.NVME, self._slot(Tier.NVME, index), CopyState.LOADING, now_ns)
        return self._queue(index, source, target, wanted)

    def _make_blocks(self, tenant: str) -> list[Block]:
        """One block a slot of the quota, each the first of a document of its own."""
        key, ns = self._engine.lifecycle.key, self._engine.lifecycle.namespaces.of(tenant)
        size = self._context.settings.block_tokens
        count = self._context.settings.guest_slots
        return [Block(block_id(key, ns, None, f"guest-{number}".encode()), ns, None, 0, size) for number in range(count)]

    def _slot(self, tier: Tier, index: int) -> Slot:
        """The guest's slots lie behind the pool's."""
        return Slot(self._context.pools[tier].slots + index)

    def _leave(self, places: dict[int, Copy], index: int) -> None:
        """End the copy that a new one takes the place of: the quota is one place a block and tier."""
        copy = places.pop(index, None)
        if copy is not None:
            emit, event = self._context.emit, self._context.ids.event()
            idle_ns = self._context.clock.now_ns() - copy.used_ns
            size = self._context.settings.block_bytes
            emit.evicted(
                copy.block.id, copy.tier, copy.slot, EvictReason.QUOTA, event, bytes=size, duration_ns=idle_ns, ns=copy.block.ns
            )

    def _queue(self, index: int, source: Copy, target: Copy, wanted: _Wanted) -> bool:
        """One op of one block; False where the queue is full."""
        book = self._context.prefetches

        def ended(transfer: Transfer) -> None:
            self._busy.discard(index)
            if transfer.outcome is TransferOutcome.DONE:
                target.state, target.used_ns = CopyState.READY, transfer.ended_ns
                (self._nvme if target.tier is Tier.NVME else self._host)[index] = target
            book.ended(transfer)
            entry = book.find(target)
            if entry is not None:
                book.give_up(entry, PrefetchWasteReason.NEVER_NEEDED)

        now_ns = self._context.clock.now_ns()
        row = Row(source.block, source, target)
        transfer = self._engine.transfers.queue([row], now_ns, ended, wanted.req, prefetch=wanted.prefetch)
        if transfer is None:
            return False
        self._busy.add(index)
        if wanted.prefetch is not None:
            book.issue([Issued(wanted.prefetch, target, transfer, None, None, 0)], now_ns)
        return True
