"""`kvtrail bench agent`, put together: the recorder, its peers and an engine on this machine, in one run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from kvtrail_agent import ring_layout as layout
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.ring_file import open_ring
from kvtrail_agent.settings import AgentSettings
from kvtrail_agent.writer_choice import WriterKind, writer_in_use
from kvtrail_schema.reasons import AgentReason

from kvtrail_cli.bench import agent_calls as calls
from kvtrail_cli.bench.agent_latency import HEAP_OBJECTS, emit_p999_ns, gil_hold_max_us
from kvtrail_cli.bench.agent_shapes import AgentBench
from kvtrail_cli.bench.agent_steps import step_windows
from kvtrail_cli.bench.agent_windows import events_per_s, overhead_of
from kvtrail_cli.bench.mix import Mix

if TYPE_CHECKING:
    from pathlib import Path

    from kvtrail_cli.output import Advance

DELIVERED_EVENTS: Final = 1 << 20
WIRE_ROWS: Final = 4_096
_DELIVERY_S: Final = 60.0
_WIRE_REQUESTS: Final = 500


def bench_agent(folder: Path, rounds: int, engine_s: float, advance: Advance) -> AgentBench:
    """Measure everything; about a minute. `folder` should lie in shared memory, as rings do."""
    used = writer_in_use()
    figures = _call_figures(folder, rounds)
    (folder / "latency").mkdir()
    with calls.writer_on(folder / "latency", used) as (writer, ring):
        p999_ns = emit_p999_ns(writer, ring)
        hold_us = gil_hold_max_us(writer, ring, lambda: writer.agent_heartbeat(AgentReason.RECORDER, 1))
    recorder = Recorder.start(_settings(folder))
    try:
        windows = step_windows(recorder, lambda: recorder.produced, engine_s, advance)
    finally:
        recorder.close(_DELIVERY_S)
    return AgentBench(
        writer=used.value,
        emit_ns=figures["emit_ns"],
        emit_block_ns=figures["emit_block_ns"],
        disabled_ns=figures["disabled_ns"],
        python_emit_ns=figures["python_emit_ns"],
        prometheus_inc_ns=figures["prometheus_inc_ns"],
        prometheus_labelled_inc_ns=figures["prometheus_labelled_inc_ns"],
        otel_span_ns=figures.get("otel_span_ns"),
        emit_p999_ns=p999_ns,
        events_per_s=_delivered_per_s(folder),
        engine_overhead_pct=overhead_of(windows),
        engine_events_per_s=events_per_s(windows),
        gil_hold_max_us=hold_us,
        wire_bytes_per_event=_wire_bytes(),
        heap_objects=HEAP_OBJECTS,
        device="cpu-emulated",
    )


def _call_figures(folder: Path, rounds: int) -> dict[str, float]:
    """Nanoseconds a call, ours and the peers', all taking turns."""
    used = writer_in_use()
    for name in ("second", "third"):
        (folder / name).mkdir()
    with (
        calls.writer_on(folder, used) as (writer, ring),
        calls.writer_on(folder / "second", WriterKind.PYTHON) as (slow, slow_ring),
        calls.writer_on(folder / "third", used) as (closed, _),
    ):
        closed._closed = True  # noqa: SLF001 - what a recorder does at its end
        loops = {
            "emit_ns": calls.emit_loop(writer),
            "emit_block_ns": calls.block_loop(writer),
            "disabled_ns": calls.emit_loop(closed),
            "python_emit_ns": calls.emit_loop(slow),
            **calls.prometheus_loops(),
            **calls.span_loops(),
        }

        def after_round() -> None:
            calls.everything_read(ring, writer)
            calls.everything_read(slow_ring, slow)

        figures = calls.measure(loops, rounds, after_round)
        return figures | {"emit_block_ns": figures["emit_block_ns"] * calls.CALLS / calls.ROWS}


def _settings(folder: Path) -> AgentSettings:
    """A recorder that ships to files beside its ring."""
    rings = folder / "rings"
    return AgentSettings(engine="bench", transport=f"file://{folder}/frames", ring_dir=rings)


def _delivered_per_s(folder: Path) -> float:
    """Events a second from emit to acknowledged frames, by a real shipper process; waits when half of the ring is full."""
    recorder = Recorder.start(_settings(folder))
    ring, emit = open_ring(recorder.ring_path), calls.emit_loop(recorder)
    begin_ns = time.perf_counter_ns()
    while recorder.produced < DELIVERED_EVENTS:
        emit()
        while recorder.produced - ring.word(layout.READ_SEQ) > ring.slot_count // 2:
            time.sleep(0.001)
    produced, delivered = recorder.produced, recorder.close(_DELIVERY_S)
    took_s = (time.perf_counter_ns() - begin_ns) / 1e9
    ring.close()
    return produced / took_s if delivered else 0.0


def _wire_bytes() -> float:
    """Bytes an event of the ingest benchmark's mix at 50,000 events a second, in batches of 4,096, amid the run."""
    mix = Mix(_WIRE_REQUESTS, epoch=7, seed=7, request_every_ns=2_000_000)
    frames = list(mix.frames(WIRE_ROWS))[2:-2]
    return sum(len(frame) for frame in frames) / (len(frames) * WIRE_ROWS)
