"""`kvtrail sql QUERY`: one SELECT over the tables and views of a collector, or of a store that none has open."""

from pathlib import Path
from typing import Annotated

import typer
from kvtrail_collector.sql_shapes import SqlAnswer
from rich.table import Column, Table
from rich.text import Text

from kvtrail_cli.client import DEFAULT_URL, CollectorClient
from kvtrail_cli.errors import InputInvalid
from kvtrail_cli.options import Json, TokenFile, Url
from kvtrail_cli.output import note, print_json, print_whole

NAME = "sql"
Query = Annotated[str, typer.Argument(help="One SELECT; docs/store.md lists tables and views.")]
Db = Annotated[
    Path | None,
    typer.Option(
        "--db", help="The file of a store that no collector has open; it is first brought to this version, as a collector does."
    ),
]
Rows = Annotated[int, typer.Option(min=1, max=100_000, help="The most rows to print.")]
Seconds = Annotated[float, typer.Option(min=0.1, max=120, help="The longest that it may take.")]


def command(  # noqa: PLR0917 - one parameter a flag
    query: Query,
    db: Db = None,
    rows: Rows = 1_000,
    seconds: Seconds = 30.0,
    url: Url = DEFAULT_URL,
    token_file: TokenFile = None,
    *,
    json: Json = False,
) -> None:
    """Ask one SELECT: read-only, without files or network, bounded in rows and time."""
    if db is not None:
        found = _of_store(db, query, rows, seconds)
    else:
        with CollectorClient(url, token_file) as collector:
            found = collector.get("/v1/sql", SqlAnswer, query=query, rows=rows, seconds=seconds)
    if json:
        print_json(found)
        return
    print_whole(_view(found))
    if found.is_cut:
        note(f"only the first {rows:,} rows: give --rows for more")


def _of_store(db: Path, query: str, rows: int, seconds: float) -> SqlAnswer:
    """Ask a store, which opening brings to this version: only the query itself writes nothing."""
    from kvtrail_collector.sql import SqlDesk, SqlLimits  # noqa: PLC0415 - loads a database only where it is used
    from kvtrail_collector.store import Store  # noqa: PLC0415 - as above

    if not db.exists():
        raise InputInvalid(f"--db {db}: there is no such file: name the DuckDB file of a collector")
    with Store.open(str(db)) as store:
        return SqlDesk(store).answer(query, SqlLimits(rows, seconds))


def _view(found: SqlAnswer) -> Table:
    """The rows for people."""
    table = Table(*(Column(Text(name), overflow="fold") for name in found.columns), box=None, header_style="dim")
    for row in found.rows:
        table.add_row(*(Text("" if value is None else str(value)) for value in row))
    return table
