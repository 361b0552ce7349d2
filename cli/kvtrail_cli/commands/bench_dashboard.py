"""`kvtrail bench dashboard`: how long each page takes on a store of ten million events."""

import os
import tempfile
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table

from kvtrail_cli.bench.dashboard_shapes import PAGE_BUDGET_S, DashboardBench
from kvtrail_cli.options import Json
from kvtrail_cli.output import OUT, print_json, progress

NAME: Final = "dashboard"


def command(
    events: Annotated[int, typer.Option(min=100_000, help="Events in the store.")] = 10_000_000,
    loads: Annotated[int, typer.Option(min=1, max=1_000, help="How often each page is opened.")] = 20,
    directory: Annotated[Path | None, typer.Option(help="Where the store goes, on the disk to be measured.")] = None,
    *,
    json: Json = False,
) -> None:
    """Measure pages from their link to their last element, each time after a new event, with nothing cached."""
    os.environ.setdefault("STREAMLIT_LOGGER_LEVEL", "error")  # pages that run outside a server make it warn
    from kvtrail_cli.bench.dashboard import bench_dashboard  # noqa: PLC0415 - loads Streamlit

    with tempfile.TemporaryDirectory(prefix="kvtrail-bench-", dir=directory) as folder, progress("events") as advance:
        found = bench_dashboard(events, loads, Path(folder), advance)
    if json:
        print_json(found)
    else:
        OUT.print(_view(found))


def _view(found: DashboardBench) -> Table:
    """The figures for people."""
    title = f"pages over {found.events:,} events, opened {found.loads} times each"
    table = Table("page", "P50", "P95", f"within {PAGE_BUDGET_S:g} s", title=title)
    for page in found.pages:
        within = "yes" if page.within_budget else "no"
        table.add_row(page.page, f"{page.p50_s:.2f} s", f"{page.p95_s:.2f} s", within)
    return table
