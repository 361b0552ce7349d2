"""`kvtrail bench query`: ledgers, attribution, why and diagnose over ten million events, beside a plain look at the rows."""

import tempfile
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table

from kvtrail_cli.bench.query_shapes import QueryBench
from kvtrail_cli.options import Json
from kvtrail_cli.output import OUT, print_json, progress

NAME: Final = "query"


def command(
    events: Annotated[int, typer.Option(min=100_000, help="Events to store and ask about.")] = 10_000_000,
    directory: Annotated[Path | None, typer.Option(help="Where the store goes, on the disk to be measured.")] = None,
    *,
    json: Json = False,
) -> None:
    """Measure how fast questions are answered over many stored events, a hundred a request."""
    from kvtrail_cli.bench.query import bench_query  # noqa: PLC0415 - loads a database

    with tempfile.TemporaryDirectory(prefix="kvtrail-bench-", dir=directory) as folder, progress("events") as advance:
        found = bench_query(events, Path(folder), advance)
    if json:
        print_json(found)
    else:
        OUT.print(_view(found))


def _view(found: QueryBench) -> Table:
    """The figures for people."""
    table = Table("figure", "value", title=f"questions over {found.events:,} events of {found.requests:,} requests")
    rows = {
        "ledgers a second, 41 intervals each, in columns": f"{found.critical_path_requests_per_s:,.0f}",
        "ledgers a second, one request at a time in objects": f"{found.peer.ledger_objects_requests_per_s:,.0f}",
        "ledgers a second, from stored events to kept rows": f"{found.ledgers_kept_requests_per_s:,.0f}",
        "reading all kept ledgers": f"{found.population_s:.2f} s",
        "attribute": f"{found.attribution_s:.2f} s",
        "why, of one request": f"{found.why_s:.3f} s",
        "diagnose, given the attribution": f"{found.diagnose_s:.2f} s",
        "a count and five sums by kind in DuckDB": f"{found.peer.duckdb_aggregate_s:.2f} s",
        "dearest of them, ms a million events": ", ".join(
            f"{name} {ms:.0f}" for name, ms in list(found.rules_ms_per_million.items())[:8]
        ),
        "all codes, ms a million events": f"{found.all_rules_ms_per_million:.0f}",
        "watching for broken invariants, µs an event": f"{found.watch_ns_per_event / 1000:.2f}",
        "verdicts": ", ".join(found.verdicts) or "none",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table
