"""`kvtrail attribute`: what made the slow requests of a window slower than those before it."""

from typing import Annotated

import typer
from kvtrail_collector.attribution_shapes import Attribution, Measure, Outcome
from kvtrail_collector.engine_shapes import EngineRow, Engines

from kvtrail_cli.client import DEFAULT_URL, CollectorClient
from kvtrail_cli.errors import Exit, InputInvalid
from kvtrail_cli.options import EngineName, Json, TokenFile, Url
from kvtrail_cli.output import OUT, print_json
from kvtrail_cli.stretch import WINDOW_HELP, Stretch, engine_of, stretch_of
from kvtrail_cli.tables import attribution_view
from kvtrail_cli.tenant_names import names_of, with_names

NAME = "attribute"
Window = Annotated[str | None, typer.Option(help=f"{WINDOW_HELP} None: the spike is searched for.")]
Reference = Annotated[str | None, typer.Option(help="As --window, for what it is compared with; none: what lies before it.")]
Moment = Annotated[int | None, typer.Option(help="Monotonic clock of the engine, ns; both or none, in place of --window.")]
Gaps = Annotated[bool, typer.Option("--gaps", help="Gaps between tokens, in place of the time to the first token.")]


def command(
    window: Window = None,
    reference: Reference = None,
    *,
    start_ns: Moment = None,
    end_ns: Moment = None,
    engine: EngineName = None,
    url: Url = DEFAULT_URL,
    token_file: TokenFile = None,
    gaps: Gaps = False,
    json: Json = False,
) -> None:
    """Explain a spike of latency: verdicts, excess by component and tier, whose work filled the queue.

    Ends with 0 where there is a verdict, or nothing slower, and with 3 where it cannot be decided.
    """
    if window is not None and (start_ns is not None or end_ns is not None):
        raise InputInvalid("--window and --start-ns/--end-ns name the window twice: give one of them")
    own, other = Stretch(start_ns, end_ns), Stretch(None, None)
    with CollectorClient(url, token_file) as collector:
        if window is not None or reference is not None:
            named = engine_of(collector.get("/v1/engines", Engines), engine)
            engine, own = named.engine, own if window is None else _closed(stretch_of(window, named), named)
            other = other if reference is None else _closed(stretch_of(reference, named, "--reference"), named)
        found = collector.get(
            "/v1/attribution",
            Attribution,
            start_ns=own.start_ns,
            end_ns=own.end_ns,
            reference_start_ns=other.start_ns,
            reference_end_ns=other.end_ns,
            measure=(Measure.GAPS if gaps else Measure.TTFT).value,
            engine=engine,
        )
        names = {} if json else names_of(collector.get("/v1/engines", Engines))
    if json:
        print_json(found)
    else:
        OUT.print(attribution_view(with_names(found, names)))
    raise typer.Exit(Exit.UNDECIDED if found.outcome is Outcome.UNDECIDED else Exit.GOOD)


def _closed(stretch: Stretch, engine: EngineRow) -> Stretch:
    """A stretch of which an open end is that of all that is known of an engine."""
    end_ns = stretch.end_ns if stretch.end_ns is not None else (engine.last_ns or 0) + 1
    return Stretch(stretch.start_ns or 0, end_ns)
