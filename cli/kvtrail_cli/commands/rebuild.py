"""`kvtrail rebuild`: compute again from events what follows from them."""

from pathlib import Path
from typing import Annotated

import typer
from kvtrail_collector.rebuild_shapes import Rebuilt
from rich.table import Table

from kvtrail_cli.client import DEFAULT_URL, CollectorClient
from kvtrail_cli.errors import InputInvalid
from kvtrail_cli.options import Json, Url
from kvtrail_cli.output import OUT, print_json

NAME = "rebuild"


def command(
    url: Url = DEFAULT_URL,
    db: Annotated[Path | None, typer.Option(help="A store, in place of a collector; no collector may have it open.")] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", envvar="KVTRAIL_CONTROL_TOKEN_FILE", help="File (0600) with the token for control."),
    ] = None,
    *,
    json: Json = False,
) -> None:
    """Compute requests, ops and all that follows from events again. Changes no event; takes seconds a million of them."""
    rebuilt = _of_file(db) if db is not None else _by_collector(url, token_file)
    if json:
        print_json(rebuilt)
    else:
        OUT.print(_view(rebuilt))


def _by_collector(url: str, token_file: Path | None) -> Rebuilt:
    """Ask the collector that has the store open."""
    with CollectorClient(url, token_file) as collector:
        return collector.post("/v1/rebuild", Rebuilt)


def _of_file(path: Path) -> Rebuilt:
    """Open the store, rebuild, close it.

    Raises:
        InputInvalid: there is no such file.
    """
    if not path.is_file():
        message = f"--db {path}: there is no such file"
        raise InputInvalid(message)
    from kvtrail_collector.rebuild import rebuild  # noqa: PLC0415 - loads a database
    from kvtrail_collector.store import Store  # noqa: PLC0415 - as above
    from kvtrail_schema.clock import SystemClock  # noqa: PLC0415 - as above

    with Store.open(str(path)) as store:
        return rebuild(store, SystemClock(), lambda: None)


def _view(rebuilt: Rebuilt) -> Table:
    """The counts for people."""
    table = Table("computed again", "rows", title=f"from {rebuilt.events:,} events in {rebuilt.seconds:,.1f} s")
    table.add_row("requests", f"{rebuilt.requests:,}")
    table.add_row("ops", f"{rebuilt.ops:,}")
    return table
