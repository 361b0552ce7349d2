"""`kvtrail attribute`: what made the slow requests of a window slower than those before it."""

from typing import Annotated

import typer
from kvtrail_collector.attribution_shapes import Attribution

from kvtrail_cli.client import DEFAULT_URL, CollectorClient
from kvtrail_cli.options import EngineName, Json, TokenFile, Url
from kvtrail_cli.output import OUT, print_json
from kvtrail_cli.tables import attribution_view

NAME = "attribute"
Moment = Annotated[
    int | None, typer.Option(help="Monotonic clock of the engine, ns; both or none: then the spike is searched for.")
]


def command(
    start_ns: Moment = None,
    end_ns: Moment = None,
    engine: EngineName = None,
    url: Url = DEFAULT_URL,
    token_file: TokenFile = None,
    *,
    json: Json = False,
) -> None:
    """Explain a spike of time to first token: verdicts, excess by component and tier, whose work filled the queue."""
    with CollectorClient(url, token_file) as collector:
        found = collector.get("/v1/attribution", Attribution, start_ns=start_ns, end_ns=end_ns, engine=engine)
    if json:
        print_json(found)
    else:
        OUT.print(attribution_view(found))
