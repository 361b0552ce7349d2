"""`kvtrail why REQUEST`: where the time of one request went."""

from typing import Annotated
from urllib.parse import quote

import typer

from kvtrail_cli.client import DEFAULT_URL, CollectorClient
from kvtrail_cli.options import EngineName, Json, TokenFile, Url
from kvtrail_cli.output import OUT, print_json
from kvtrail_cli.shapes import WhyAnswer
from kvtrail_cli.waterfall import why_view

NAME = "why"
Request = Annotated[str, typer.Argument(help="The request's number, the engine's own text for it, or epoch:rank:number.")]


def command(
    request: Request, engine: EngineName = None, url: Url = DEFAULT_URL, token_file: TokenFile = None, *, json: Json = False
) -> None:
    """Show every part of a request's time to first token, what ran hidden beside it, and what it waited behind."""
    path = f"/v1/requests/{quote(request, safe=':')}"
    with CollectorClient(url, token_file) as collector:
        if json:
            print_json(collector.get_raw(path, engine=engine))
        else:
            OUT.print(why_view(collector.get(path, WhyAnswer, engine=engine)))
