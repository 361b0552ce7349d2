"""The calls that `kvtrail bench agent` measures, each a loop of its own, so that all can take turns."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from kvtrail_agent import ring_layout as layout
from kvtrail_agent.emit_methods import EmitMethods
from kvtrail_agent.ring_file import RingFile, create_ring
from kvtrail_agent.writer_choice import WriterKind, writer_in_use
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.enums import Path as TransferPath
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, Epoch, OpId, PrefetchId, Rank, RequestId, Slot, Stream
from kvtrail_schema.kinds import Kind
from prometheus_client import CollectorRegistry, Counter

if TYPE_CHECKING:
    from kvtrail_agent.ring_blocks import BlockWriter

CALLS: Final = 2_000
BLOCKS: Final = 40
ROWS: Final = 20_000
"""Of blocks, a round: so many calls that what is measured is the calls and not the first of them."""
SLOTS: Final = 1 << 16
_DRAW: Final = random.Random(1)  # noqa: S311 - ids of a benchmark
BLOCK, REQ = BlockId(_DRAW.getrandbits(64)), RequestId(_DRAW.getrandbits(63))
OP, SLOT, PREFETCH = OpId(700_001), Slot(77), PrefetchId(9_001)
GPU, NVME, POSIX, PINNED = Tier.GPU, Tier.NVME, TransferPath.POSIX, True

Loop = Callable[[], None]


@contextmanager
def writer_on(folder: Path, kind: WriterKind) -> Iterator[tuple[EmitMethods, RingFile]]:
    """A writer on a ring of its own, which nobody reads."""
    ring = create_ring(folder / f"{kind.value}.ring", Stream("bench", Epoch(1), Rank(0)), SLOTS, 1 << 20)
    yield writer_class(kind)(ring, SystemClock()), ring
    ring.close()


def writer_class(kind: WriterKind) -> type[EmitMethods]:
    """The class of a writer; that in Python where the other one was not built."""
    if kind is WriterKind.PYTHON or writer_in_use() is WriterKind.PYTHON:
        return EmitMethods
    from kvtrail_agent.emit_fast import FastEmitMethods  # noqa: PLC0415 - only where the extension is built

    return FastEmitMethods


def emit_loop(writer: EmitMethods) -> Loop:
    """`swap_in_loaded`, its 13 arguments by position."""
    emit = writer.swap_in_loaded

    def run() -> None:
        for _ in range(CALLS):
            emit(OP, NVME, GPU, BLOCK, SLOT, 2_097_152, 512, REQ, PREFETCH, POSIX, PINNED, 0, 1)

    return run


def block_loop(writer: BlockWriter) -> Loop:
    """The same rows, `ROWS` of them, forty a call, their ids in a numpy buffer."""
    emit = writer.emit_blocks
    ids = np.random.default_rng(1).integers(0, 2**63, BLOCKS, dtype=np.uint64)

    def run() -> None:
        for _ in range(ROWS // BLOCKS):
            emit(Kind.SWAP_IN_LOADED, ids, op=OP, src=NVME, dst=GPU, bytes=2_097_152, tokens=512, req=REQ, prefetch=PREFETCH)

    return run


def prometheus_loops() -> dict[str, Loop]:
    """A counter without labels, and one whose labels are looked up at each call."""
    registry = CollectorRegistry()
    plain = Counter("bench_swaps", "Swaps.", registry=registry)
    labelled = Counter("bench_labelled_swaps", "Swaps.", ["src", "dst"], registry=registry)

    def run_plain() -> None:
        for _ in range(CALLS):
            plain.inc()

    def run_labelled() -> None:
        for _ in range(CALLS):
            labelled.labels("nvme", "gpu").inc()

    return {"prometheus_inc_ns": run_plain, "prometheus_labelled_inc_ns": run_labelled}


def span_loops() -> dict[str, Loop]:
    """A recording span of OpenTelemetry with the same thirteen values, exported nowhere; nothing where it is not installed."""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        return {}
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - a peer that need not be there

    tracer = TracerProvider().get_tracer("bench")
    names = ("op", "src", "dst", "block", "slot", "bytes", "tokens", "req", "prefetch", "path", "pinned", "numa", "device_numa")
    values = (OP, NVME, GPU, BLOCK, SLOT, 2_097_152, 512, REQ, PREFETCH, POSIX, PINNED, 0, 1)

    def run() -> None:
        for _ in range(CALLS):
            tracer.start_span("swap_in", attributes=dict(zip(names, values, strict=True))).end()

    return {"otel_span_ns": run}


def measure(loops: dict[str, Loop], rounds: int, after_round: Callable[[], None]) -> dict[str, float]:
    """Median nanoseconds a call. All take turns in each round, so that noise of the machine falls on all of them."""
    found: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(rounds):
        for name, run in loops.items():
            begin_ns = time.perf_counter_ns()
            run()
            found[name].append((time.perf_counter_ns() - begin_ns) / CALLS)
        after_round()
    return {name: statistics.median(figures) for name, figures in found.items()}


def everything_read(ring: RingFile, writer: EmitMethods) -> None:
    """Stand in for the shipper: all that was written is read."""
    ring.set_word(layout.READ_SEQ, writer._last_seq())  # noqa: SLF001 - the benchmark stands where the reader would
