"""What one emit costs the engine's thread: `swap_in_loaded` with 13 arguments, beside two peers in the same run.

`python bench/agent_emit.py [ROUNDS]` prints nanoseconds a call. The peers are `struct.pack_into` of the same record, which
is the floor of a writer in pure Python, and a bounded deque of tuples, which is what one would write first. All take turns
within each round, so that noise of the machine falls on all of them. Ids are random 64-bit numbers, as engines have them.
"""

import random
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kvtrail_agent import ring_layout as layout
from kvtrail_agent.emit_methods import EmitMethods
from kvtrail_agent.ring_file import RingFile, create_ring
from kvtrail_agent.settings import default_ring_dir
from kvtrail_schema.absent import NO_U64
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.enums import Path as TransferPath
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, Epoch, OpId, PrefetchId, Rank, RequestId, Slot, Stream
from kvtrail_schema.kinds import Kind

CALLS: Final = 20_000
BLOCK, REQ = BlockId(random.getrandbits(64) | 1 << 63), RequestId(random.getrandbits(63) | 1 << 62)
OP, SLOT, PREFETCH = OpId(700_001), Slot(77), PrefetchId(9_001)
GPU, NVME, POSIX, PINNED = Tier.GPU, Tier.NVME, TransferPath.POSIX, True

Bench = Callable[[], None]


def emit_calls(writer: EmitMethods) -> Bench:
    """The emit itself, its 13 arguments by position."""
    emit = writer.swap_in_loaded

    def run() -> None:
        for _ in range(CALLS):
            emit(OP, NVME, GPU, BLOCK, SLOT, 2_097_152, 512, REQ, PREFETCH, POSIX, PINNED, 0, 1)

    return run


def pack_calls(ring: RingFile) -> Bench:
    """The same record by `struct.pack_into` alone: no seq, no clock, no look at the room."""
    pack = layout.record_struct(Kind.SWAP_IN_LOADED).pack_into
    memory = memoryview(ring.memory)[layout.SLOTS_OFFSET :]

    def run() -> None:
        for seq in range(CALLS):
            pack(
                memory, 0, 1_234_567_890_123_456,
                NO_U64, NO_U64, NO_U64, NO_U64, NO_U64, NO_U64, OP, BLOCK, 2_097_152, REQ, PREFETCH, NO_U64,
                SLOT, 512, 0, 1, NVME, GPU, POSIX, PINNED, 35, seq,
            )  # fmt: skip

    return run


def deque_calls() -> Bench:
    """A tuple of the same values with a time, onto a bounded deque."""
    queue: deque[tuple[int, ...]] = deque(maxlen=4096)
    append, now_ns = queue.append, time.monotonic_ns

    def run() -> None:
        for _ in range(CALLS):
            append((now_ns(), 35, OP, NVME, GPU, BLOCK, SLOT, 2_097_152, 512, REQ, PREFETCH, POSIX, PINNED, 0, 1))

    return run


def measure(benches: dict[str, Bench], rounds: int, after_round: Callable[[], None]) -> dict[str, list[float]]:
    """Nanoseconds a call, one figure a round; all take turns."""
    found: dict[str, list[float]] = {name: [] for name in benches}
    for _ in range(rounds):
        for name, run in benches.items():
            begin_ns = time.perf_counter_ns()
            run()
            found[name].append((time.perf_counter_ns() - begin_ns) / CALLS)
        after_round()
    return found


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    with tempfile.TemporaryDirectory(dir=default_ring_dir().parent) as folder:
        ring = create_ring(Path(folder) / "bench.ring", Stream("bench", Epoch(1), Rank(0)), 1 << 18, 1 << 20)
        writer = EmitMethods(ring, SystemClock())

        def deliver() -> None:
            """Stand in for the shipper: everything is read."""
            ring.set_word(layout.READ_SEQ, ring.word(layout.READ_SEQ) + CALLS)

        benches = {"emit": emit_calls(writer), "struct.pack_into": pack_calls(ring), "deque of tuples": deque_calls()}
        for name, figures in measure(benches, rounds, deliver).items():
            print(f"{name:18} {statistics.median(figures):6.0f} ns median, {min(figures):6.0f} ns at best, cpu")
        ring.close()


if __name__ == "__main__":
    main()
