"""What recording costs an engine that is busy: one run of steps, in which the recorder is switched every hundred steps.

A step is a product of matrices of about a millisecond on the engine's thread, by torch on one processor, and fifty events: a
request that comes, is answered and goes, told as the reference engine tells it, blocks of an op by one call. Its length is
fixed once; what varies is only who takes the events: the recorder, or the engine's own no-op.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from kvtrail_engine.observers import emitter_of
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, EventId, OpId, RequestId, Slot, StepId
from kvtrail_schema.kinds import Kind
from kvtrail_schema.reasons import EvictReason, FinishReason, PrefillReason

from kvtrail_cli.bench.agent_windows import WINDOW_STEPS, Window

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvtrail_schema.emitter import Emitter

    from kvtrail_cli.output import Advance

EVENTS_A_STEP: Final = 50
STEP_NS: Final = 950_000
"""With its events some more: fifty thousand events a second of the engine's thread."""
_ROWS: Final = 64
_COLUMNS: Final = 512
_BLOCK_BYTES: Final = 2 << 20
_BLOCKS: Final = 6
_TOKENS_OUT: Final = 5
_WARM_UP_WINDOWS: Final = 4


@dataclass(frozen=True, slots=True)
class Told:
    """The ids of one step's request, as an engine has them: plain numbers in lists."""

    req: RequestId
    blocks: list[int]
    slots: list[int]


def tell(emit: Emitter, told: Told, step: StepId) -> None:
    """The fifty events of a step."""
    req, blocks, slots, op = told.req, told.blocks, told.slots, OpId(2 * step)
    emit.request_arrived(req, 812)
    emit.lookup_finished(req, 30_000, 812)
    emit.prefix_hit(req, BlockId(blocks[0]), Tier.NVME, 96)
    for kind in (Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_STARTED):
        emit.emit_blocks(kind, blocks, slots, op=op, src=Tier.NVME, dst=Tier.GPU, bytes=_BLOCK_BYTES, req=req)
    times = {"queue_ns": 80_000, "io_ns": 900_000, "copy_ns": 60_000}
    emit.emit_blocks(
        Kind.SWAP_IN_LOADED, blocks, slots, op=op, src=Tier.NVME, dst=Tier.GPU, bytes=_BLOCK_BYTES, tokens=16, req=req, **times
    )
    emit.request_admitted(req, step)
    emit.emit_blocks(Kind.ATTENTION_READ, blocks, slots, req=req, tier=Tier.GPU)
    emit.emit_blocks(Kind.BLOCK_CREATED, blocks, slots, tier=Tier.GPU, req=req, tokens=16, bytes=_BLOCK_BYTES)
    for block, slot in zip(blocks, slots, strict=True):
        event = EventId(block)
        emit.evicted(BlockId(block), Tier.GPU, Slot(slot), EvictReason.CAPACITY, id=event, bytes=_BLOCK_BYTES)
    emit.step_started(step)
    emit.prefill_chunk(req, step, 716, PrefillReason.NEW, 96)
    emit.step_finished(step, 716)
    emit.request_first_token(req, step)
    for _ in range(_TOKENS_OUT):
        emit.tokens_emitted(req, step, 1)
    emit.request_finished(req, _TOKENS_OUT, FinishReason.STOP)


def step_windows(recorder: Emitter, produced: Callable[[], int], seconds: float, advance: Advance) -> list[Window]:
    """Windows of a hundred steps, recorded and not in turn. Blocks for so many seconds on a machine that has the time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        products = _products_a_step()
        count = max(2, int(seconds * 1e9 / (WINDOW_STEPS * STEP_NS))) + _WARM_UP_WINDOWS
        emitters, windows, stories = (recorder, emitter_of([])), [], _stories()
        for number in range(count):
            windows.append(_window(emitters[number % 2], produced, products, stories))
            advance(number + 1, count)
    finally:
        torch.set_num_threads(threads)
    return windows[_WARM_UP_WINDOWS:]


def _window(emit: Emitter, produced: Callable[[], int], products: int, stories: list[Told]) -> Window:
    """A hundred steps by one emitter."""
    left, right, before = torch.ones(_ROWS, _COLUMNS), torch.ones(_COLUMNS, _COLUMNS), produced()
    begin_ns = time.thread_time_ns()
    for step in range(WINDOW_STEPS):
        for _ in range(products):
            torch.mm(left, right)
        tell(emit, stories[step], StepId(step))
    thread_ns = time.thread_time_ns() - begin_ns
    events = produced() - before
    return Window(events > 0, thread_ns, WINDOW_STEPS, events)


def _products_a_step() -> int:
    """How many products make a step of its length, of the thread's own time."""
    left, right = torch.ones(_ROWS, _COLUMNS), torch.ones(_COLUMNS, _COLUMNS)
    took_ns = []
    for _ in range(100):
        begin_ns = time.thread_time_ns()
        torch.mm(left, right)
        took_ns.append(time.thread_time_ns() - begin_ns)
    return max(1, round(STEP_NS / float(np.median(took_ns))))


def _stories() -> list[Told]:
    """A request for each step of a window, with ids that are random numbers."""
    draw = np.random.default_rng(1)
    return [
        Told(
            RequestId(int(draw.integers(1, 2**63))),
            [int(number) for number in draw.integers(1, 2**63, _BLOCKS, dtype=np.uint64)],
            [int(number) for number in draw.integers(0, 50_000, _BLOCKS)],
        )
        for _ in range(WINDOW_STEPS)
    ]
