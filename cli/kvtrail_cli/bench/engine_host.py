"""An op of the host tier beside the bare `copy_` of the same blocks."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import torch
from kvtrail_engine.clock import SystemClock
from kvtrail_engine.runtime.arena import Arena
from kvtrail_engine.runtime.copies import CopyStream
from kvtrail_engine.runtime.device import make_deterministic
from kvtrail_engine.settings import EngineSettings, FloorSettings, ModelSettings
from kvtrail_engine.tiers.block import Copy, CopyState
from kvtrail_engine.tiers.floor import Floor
from kvtrail_engine.tiers.host import HostMover
from kvtrail_engine.tiers.transfer import Row, Transfer
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import OpId, Slot

from kvtrail_cli.bench.engine_nvme import block_of
from kvtrail_cli.bench.engine_rounds import gb_per_s, in_turns
from kvtrail_cli.bench.engine_shapes import Beside

OPS: Final = 200
SLOTS: Final = 256


def bench_host(block_bytes: int, op_blocks: int, rounds: int, advance: Callable[[], None]) -> Beside:
    """GB a second from host to the gpu's arena, on the CPU."""
    settings = EngineSettings(data_dir=Path(), block_tokens=32, model=_model_of(block_bytes))
    cpu, clock = torch.device("cpu"), SystemClock()
    make_deterministic(cpu)  # as in an engine: one thread a copy, on both sides
    gpu, host = Arena(settings, SLOTS, cpu), Arena(settings, SLOTS, cpu)
    mover = HostMover(gpu, host, CopyStream(cpu, clock), Floor(FloorSettings(), clock), clock)
    ops = [[(at * op_blocks + n) % SLOTS for n in range(op_blocks)] for at in range(OPS)]
    size = OPS * op_blocks * settings.block_bytes

    def ours() -> float:
        transfers = [_transfer(op, clock.now_ns()) for op in ops]
        began_s = time.perf_counter()
        for transfer in transfers:
            mover.move(transfer)
        return gb_per_s(size, time.perf_counter() - began_s)

    def peer() -> float:
        began_s = time.perf_counter()
        for op in ops:
            for slot in op:
                gpu.data[slot].copy_(host.data[slot])
        return gb_per_s(size, time.perf_counter() - began_s)

    return in_turns(ours, peer, rounds, advance)


def _model_of(block_bytes: int) -> ModelSettings:
    """A model whose blocks of 32 tokens are so large: layers of 16 KiB each."""
    return ModelSettings(layers=max(block_bytes // (16 * 1024), 1), width=256, heads=4, kv_heads=1)


def _transfer(slots: list[int], now_ns: int) -> Transfer:
    """An op from host to gpu."""
    rows = []
    for slot in slots:
        block = block_of(slot)
        source = Copy(block, Tier.HOST, Slot(slot), CopyState.READY, 0)
        rows.append(Row(block, source, Copy(block, Tier.GPU, Slot(slot), CopyState.LOADING, 0)))
    transfer = Transfer(OpId(1), Tier.HOST, Tier.GPU, tuple(rows), now_ns)
    transfer.started_ns = now_ns
    return transfer
