"""`kvtrail loss`: produced = stored + dropped, for every stream; ends with 1 when something is unaccounted for."""

import typer
from kvtrail_collector.loss_shapes import Loss

from kvtrail_cli.client import DEFAULT_URL, CollectorClient
from kvtrail_cli.errors import Exit
from kvtrail_cli.options import Json, TokenFile, Url
from kvtrail_cli.output import OUT, print_json
from kvtrail_cli.tables import loss_view

NAME = "loss"


def command(url: Url = DEFAULT_URL, token_file: TokenFile = None, *, json: Json = False) -> None:
    """Show what was produced, stored, dropped by whom, and what nobody accounts for."""
    with CollectorClient(url, token_file) as collector:
        loss = collector.get("/v1/loss", Loss)
    if json:
        print_json(loss)
    else:
        OUT.print(loss_view(loss))
    raise typer.Exit(Exit.GOOD if loss.balanced else Exit.BAD)
