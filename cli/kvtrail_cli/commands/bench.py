"""`kvtrail bench`: what the parts cost and how fast they are, measured on this machine; one file a verb (`bench_*.py`)."""

import typer

from kvtrail_cli.commands import bench_agent, bench_dashboard, bench_engine, bench_ingest, bench_query

APP = typer.Typer(help="Measure on this machine, each figure beside its peers in the same run.", no_args_is_help=True)


@APP.callback()
def group() -> None:
    """Measure on this machine, each figure beside its peers in the same run."""


for verb in (bench_agent, bench_dashboard, bench_engine, bench_ingest, bench_query):
    APP.command(name=verb.NAME)(verb.command)
