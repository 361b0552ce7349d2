"""`kvtrail bench agent`: what recording costs an engine, beside what counters and spans would cost it."""

import tempfile
from pathlib import Path
from typing import Annotated, Final

import typer
from kvtrail_agent.settings import default_ring_dir
from rich.table import Table

from kvtrail_cli.bench.agent_shapes import AgentBench
from kvtrail_cli.options import Json
from kvtrail_cli.output import OUT, print_json, progress

NAME: Final = "agent"


def command(
    rounds: Annotated[int, typer.Option(min=3, max=10_000, help="Rounds in which the calls take turns.")] = 200,
    directory: Annotated[Path | None, typer.Option(help="Where rings and files go; shared memory by default.")] = None,
    engine_s: Annotated[float, typer.Option(min=1.0, max=600.0, help="Seconds of steps, recorded and not in turn.")] = 40.0,
    *,
    json: Json = False,
) -> None:
    """Measure what the recorder costs the engine's thread, and what its events cost on the wire."""
    from kvtrail_cli.bench.agent import bench_agent  # noqa: PLC0415 - loads torch

    parent = directory or default_ring_dir().parent
    with tempfile.TemporaryDirectory(prefix="kvtrail-bench-", dir=parent) as folder, progress("windows") as advance:
        found = bench_agent(Path(folder), rounds, engine_s, advance)
    if json:
        print_json(found)
    else:
        OUT.print(_view(found))


def _view(found: AgentBench) -> Table:
    """The figures for people."""
    table = Table("figure", "value", title=f"recorder, writer in {found.writer}")
    over = found.engine_overhead_pct
    rows = {
        "emit, 13 arguments": f"{found.emit_ns:.0f} ns",
        "emit, P99.9": f"{found.emit_p999_ns:,.0f} ns",
        "a row of 40 blocks": f"{found.emit_block_ns:.1f} ns",
        "emit once closed": f"{found.disabled_ns:.0f} ns",
        "emit, writer in Python": f"{found.python_emit_ns:.0f} ns",
        "Prometheus inc · labels().inc()": f"{found.prometheus_inc_ns:.0f} ns · {found.prometheus_labelled_inc_ns:.0f} ns",
        "OpenTelemetry span": "not installed" if found.otel_span_ns is None else f"{found.otel_span_ns:,.0f} ns",
        "events a second, emit to acknowledged": f"{found.events_per_s:,.0f}",
        f"engine's thread, at {found.engine_events_per_s:,.0f} events a second": (
            f"{over.median:+.2f} % ({over.low:+.2f} to {over.high:+.2f})"
        ),
        "longest hold of the interpreter": f"{found.gil_hold_max_us:.0f} µs",
        "bytes an event on the wire": f"{found.wire_bytes_per_event:.1f}",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table
