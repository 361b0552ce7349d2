"""A guest tenant with a quota of its own: blocks that it once stored on nvme and now reads in bulk into host.

Its ops go through the queue, the workers and the files of everybody, and are told like everybody's.
"""

import torch
from kvtrail_schema.enums import Dtype, Tier
from kvtrail_schema.identity import RequestId, Slot, block_id
from kvtrail_schema.reasons import EvictReason

from kvtrail_engine.engine import Engine
from kvtrail_engine.tiers.pool import Block, Copy, CopyState
from kvtrail_engine.tiers.transfer import Row, Transfer, TransferOutcome


class Guest:
    """Lives on the engine's thread. Slot i of its quota holds its block i, on nvme always and on host while it is read."""

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
            self._queue(index, copy, target, req)

    def read(self, ops: int, req: RequestId) -> int:
        """Queue reads of so many of its blocks, round and round, one op a block; how many were queued."""
        queued = 0
        for _ in range(min(ops, len(self._blocks))):
            index, self._next = self._next, (self._next + 1) % len(self._blocks)
            source = self._nvme.get(index)
            if index in self._busy or source is None:
                continue
            self._leave_host(index)
            target = Copy(
                source.block, Tier.HOST, self._slot(Tier.HOST, index), CopyState.LOADING, self._context.clock.now_ns()
            )
            queued += self._queue(index, source, target, req)
        return queued

    def _make_blocks(self, tenant: str) -> list[Block]:
        """One block a slot of the quota, each the first of a document of its own."""
        key, ns = self._engine.lifecycle.key, self._engine.lifecycle.namespaces.of(tenant)
        size = self._context.settings.block_tokens
        count = self._context.settings.guest_slots
        return [Block(block_id(key, ns, None, f"guest-{number}".encode()), ns, None, 0, size) for number in range(count)]

    def _slot(self, tier: Tier, index: int) -> Slot:
        """The guest's slots lie behind the pool's."""
        return Slot(self._context.pools[tier].slots + index)

    def _leave_host(self, index: int) -> None:
        """End the host copy that an earlier read brought: the quota is one place a block."""
        copy = self._host.pop(index, None)
        if copy is not None:
            emit, event = self._context.emit, self._context.ids.event()
            idle_ns = self._context.clock.now_ns() - copy.used_ns
            size = self._context.settings.block_bytes
            emit.evicted(
                copy.block.id, Tier.HOST, copy.slot, EvictReason.QUOTA, event, bytes=size, duration_ns=idle_ns, ns=copy.block.ns
            )

    def _queue(self, index: int, source: Copy, target: Copy, req: RequestId) -> bool:
        """One op of one block; False where the queue is full."""

        def ended(transfer: Transfer) -> None:
            self._busy.discard(index)
            if transfer.outcome is TransferOutcome.DONE:
                target.state, target.used_ns = CopyState.READY, transfer.ended_ns
                (self._nvme if target.tier is Tier.NVME else self._host)[index] = target

        row = Row(source.block, source, target)
        if self._engine.transfers.queue([row], self._context.clock.now_ns(), ended, req) is None:
            return False
        self._busy.add(index)
        return True
