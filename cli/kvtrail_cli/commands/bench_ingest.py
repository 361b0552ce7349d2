"""`kvtrail bench ingest`: from an HTTP call or a topic to committed rows with projections, beside a raw insert into DuckDB."""

import tempfile
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table

from kvtrail_cli.bench.shapes import IngestBench, Source
from kvtrail_cli.options import Json
from kvtrail_cli.output import OUT, print_json, progress

NAME: Final = "ingest"


def command(
    events: Annotated[int, typer.Option(min=100_000, help="Events to send, in all.")] = 4_000_000,
    frame_rows: Annotated[int, typer.Option(min=100, max=1 << 20, help="Events of one batch.")] = 65_536,
    senders: Annotated[int, typer.Option(min=1, max=16, help="Batches on their way at the same time.")] = 8,
    readers: Annotated[int, typer.Option(min=0, max=64, help="Clients that ask without a pause meanwhile.")] = 0,
    *,
    source: Annotated[Source, typer.Option(help="How the collector is fed; a topic is filled before it starts.")] = Source.HTTP,
    bootstrap: Annotated[str, typer.Option(help="Kafka brokers to use: host:port[,host:port]; without, one is started.")] = "",
    rate: Annotated[
        int, typer.Option(min=0, help="Events a second over HTTP, to see how late they are; 0: as many as go.")
    ] = 0,
    seal_after_s: Annotated[
        float, typer.Option(min=0, help="Seal meanwhile what is older, which is all; 0: seal nothing.")
    ] = 0.0,
    directory: Annotated[Path | None, typer.Option(help="Where the files go, on the disk to be measured.")] = None,
    json: Json = False,
) -> None:
    """Measure how many events a second a collector stores, how late they are, and how much room they take."""
    from kvtrail_cli.bench.ingest import Load, bench_ingest  # noqa: PLC0415 - loads a database

    load = Load(events, frame_rows, senders, readers, source, bootstrap, rate, seal_after_s)
    with tempfile.TemporaryDirectory(prefix="kvtrail-bench-", dir=directory) as folder, progress("events") as advance:
        found = bench_ingest(load, Path(folder), advance)
    if json:
        print_json(found)
    else:
        OUT.print(_view(found))


def _view(found: IngestBench) -> Table:
    """The figures for people."""
    table = Table("figure", "value", title=f"ingest over {found.source}")
    rows = {
        "events a second, committed with projections": f"{found.events_per_s:,.0f}",
        "rows a second, raw insert into DuckDB": f"{found.rows_per_s_raw_duckdb:,.0f}",
        "from sending to acknowledgement, P99": "-" if found.lag_p99_ms is None else f"{found.lag_p99_ms:,.0f} ms",
        "bytes an event, hot file with projections": f"{found.hot_bytes_per_event:.1f}",
        "bytes an event, sealed": f"{found.sealed_bytes_per_event:.1f}",
        "processor time of the collector, a million events": f"{found.cpu_s_per_million_events:.2f} s",
        "memory of the collector, at most": f"{found.rss_mb:,.0f} MB",
        "log of the hot file, at most": f"{found.wal_max_mb:,.0f} MB",
        "hot file, at most": f"{found.hot_max_mb:,.0f} MB",
        **{f"events a second, around row {at.rows:,}": f"{at.events_per_s:,.0f}" for at in found.growth},
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table
