"""How long single calls of the recorder take, and how long they keep the interpreter."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np
from kvtrail_schema.kinds import Kind

from kvtrail_cli.bench.agent_calls import BLOCK, GPU, NVME, OP, PINNED, POSIX, PREFETCH, REQ, SLOT, everything_read

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvtrail_agent.emit_methods import EmitMethods
    from kvtrail_agent.ring_file import RingFile

HEAP_OBJECTS: Final = 600_000
SINGLE_CALLS: Final = 200_000
_HOLDS: Final = 2_000
_LARGEST_BATCH: Final = 1_024


def emit_p999_ns(writer: EmitMethods, ring: RingFile) -> float:
    """P99.9 of one emit while the heap holds many objects and its owner keeps making more, less the two clock readings."""
    heap = [[number] for number in range(HEAP_OBJECTS)]
    times = np.empty(SINGLE_CALLS, dtype=np.int64)
    clock, emit = time.perf_counter_ns, writer.swap_in_loaded
    for call in range(SINGLE_CALLS):
        heap[call] = [call]  # an engine makes and drops objects all the time: that is what calls the collector
        begin_ns = clock()
        emit(OP, NVME, GPU, BLOCK, SLOT, 2_097_152, 512, REQ, PREFETCH, POSIX, PINNED, 0, 1)
        times[call] = clock() - begin_ns
        if call % 10_000 == 0:
            everything_read(ring, writer)
    return float(np.quantile(times, 0.999)) - _clock_ns()


def _clock_ns() -> float:
    """What two readings of the clock cost by themselves."""
    clock = time.perf_counter_ns
    readings = [-clock() + clock() for _ in range(10_000)]
    return float(np.median(readings))


def gil_hold_max_us(writer: EmitMethods, ring: RingFile, beat: Callable[[], object]) -> float:
    """The most processor time that one of our calls took: an emit, a batch of blocks from a list, a beat of the heartbeat.

    Processor time of the thread, so that it does not count what the machine gave to others.
    """
    ids = list(range(1 << 62, (1 << 62) + _LARGEST_BATCH))
    calls: list[Callable[[], object]] = [
        lambda: writer.swap_in_loaded(OP, NVME, GPU, BLOCK, SLOT, 2_097_152, 512, REQ),
        lambda: writer.emit_blocks(Kind.SWAP_IN_LOADED, ids, op=OP, src=NVME, dst=GPU),
        beat,
    ]
    longest_ns = 0
    for _ in range(_HOLDS):
        for call in calls:
            begin_ns = time.thread_time_ns()
            call()
            longest_ns = max(longest_ns, time.thread_time_ns() - begin_ns)
        everything_read(ring, writer)
    return longest_ns / 1_000
