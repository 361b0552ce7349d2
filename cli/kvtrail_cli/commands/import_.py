"""`kvtrail import`: what other engines wrote into files, as events."""

from pathlib import Path
from typing import Annotated, Final

import typer
from kvtrail_agent.fleet_key import fleet_key
from kvtrail_agent.importers.formats import FORMATS
from kvtrail_agent.importers.importing import Import
from kvtrail_agent.importers.user_key import user_key, user_key_file

from kvtrail_cli.errors import Exit, InputInvalid
from kvtrail_cli.importing.answer import import_view, imported
from kvtrail_cli.importing.outputs import Place, opened_output
from kvtrail_cli.options import Json, KafkaOptionsFile
from kvtrail_cli.output import OUT, print_json, progress

NAME: Final = "import"
HELP: Final = f"""Import what other engines wrote into files; ends with 1 where something could not be read.

What a format cannot tell is said, and what could not be read, line by line. The same file may be imported again: what is stored
is not stored twice.

Formats: {"; ".join(f"{one.name}: {one.title}" for one in FORMATS.values())}.
"""


def command(  # noqa: PLR0917 - one parameter a flag
    format_name: Annotated[str, typer.Argument(metavar="FORMAT", help="One of the formats above.")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files of one source, oldest first.")],
    to: Annotated[
        str | None,
        typer.Option(envvar="KVTRAIL_TRANSPORT", help="Where events go: http(s)://host:port, file:///directory, kafka://…"),
    ] = None,
    db: Annotated[Path | None, typer.Option(help="A store, in place of a collector; no collector may have it open.")] = None,
    out: Annotated[Path | None, typer.Option(help="A file of JSON Lines, for `kvtrail diagnose FILE`; replaced.")] = None,
    engine: Annotated[str, typer.Option(help="The name to give the engine, in place of the source's own.")] = "",
    key_file: Annotated[
        Path | None,
        typer.Option(
            envvar="KVTRAIL_KEY_FILE", help="The fleet's key (0600); absent, one of this user's own is made and kept."
        ),
    ] = None,
    token_file: Annotated[Path | None, typer.Option(envvar="KVTRAIL_WRITE_TOKEN_FILE", help="Token for writing.")] = None,
    kafka_options_file: KafkaOptionsFile = None,
    *,
    json: Json = False,
) -> None:
    """Import what other engines wrote into files."""
    chosen = FORMATS.get(format_name)
    if chosen is None:
        raise InputInvalid(f"format {format_name!r} is none of {', '.join(FORMATS)}")
    missing = next((path for path in files if not path.is_file()), None)
    if missing is not None:
        raise InputInvalid(f"{missing}: there is no such file")
    # A flag that names another place is stronger than the environment's transport.
    place = Place(None if db is not None or out is not None else to, db, out, token_file, kafka_options_file)
    key = fleet_key(key_file) if key_file is not None else user_key(user_key_file())
    anchor_ns = min(path.stat().st_mtime_ns for path in files)
    with opened_output(place, anchor_ns) as output, progress("bytes") as advance:
        totals = Import(chosen, key, output, engine, advance).run(files)
    answer = imported(chosen, files, place.name, totals)
    if json:
        print_json(answer)
    else:
        OUT.print(import_view(answer))
    raise typer.Exit(Exit.BAD if answer.quarantined else Exit.GOOD)
