"""`kvtrail export`: a stretch of time as a file for other tools; one verb a form."""

from pathlib import Path
from typing import Annotated, Final

import typer
from kvtrail_collector.engine_shapes import Engines

from kvtrail_cli.client import DEFAULT_URL, CollectorClient
from kvtrail_cli.options import EngineName, TokenFile, Url
from kvtrail_cli.output import note
from kvtrail_cli.stretch import WINDOW_HELP, engine_of, stretch_of

APP = typer.Typer(help="Write a stretch of time as a file for other tools.", no_args_is_help=True)
Window = Annotated[str | None, typer.Option(help=f"Which stretch of time: {WINDOW_HELP} Absent: everything.")]
Out = Annotated[Path, typer.Option("--out", help="File to write; one that is there is replaced.")]
_MODE: Final = 0o600


@APP.callback()
def group() -> None:
    """Write a stretch of time as a file for other tools."""


@APP.command(name="perfetto")
def perfetto(
    out: Out = Path("kvtrail.pftrace"),
    window: Window = None,
    engine: EngineName = None,
    url: Url = DEFAULT_URL,
    token_file: TokenFile = None,
) -> None:
    """Requests, steps, transfers and levels of tiers as a Perfetto trace, to be opened at ui.perfetto.dev."""
    _export("/v1/export/perfetto", out, window, engine, CollectorClient(url, token_file))


@APP.command(name="parquet")
def parquet(
    out: Out = Path("kvtrail.parquet"),
    window: Window = None,
    engine: EngineName = None,
    url: Url = DEFAULT_URL,
    token_file: TokenFile = None,
) -> None:
    """Events as a Parquet file, in order of stream and seq."""
    _export("/v1/export/parquet", out, window, engine, CollectorClient(url, token_file))


def _export(path: str, out: Path, window: str | None, engine: str | None, client: CollectorClient) -> None:
    """Ask for a file and write it; its owner alone may read it, as it holds events."""
    with client as collector:
        about = engine_of(collector.get("/v1/engines", Engines), engine)
        start_ns, end_ns = stretch_of(window, about)
        content = collector.get_raw(path, engine=about.engine, start_ns=start_ns, end_ns=end_ns)
    out.unlink(missing_ok=True)
    out.touch(_MODE)
    out.write_bytes(content)
    note(f"wrote {len(content):,} bytes to {out}")
