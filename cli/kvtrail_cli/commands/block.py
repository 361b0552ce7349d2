"""`kvtrail block HASH`: the whole life of a block, or where its copies were at a moment."""

from typing import Annotated, Final
from urllib.parse import quote

import typer
from kvtrail_collector.block_life import FOREVER_NS
from kvtrail_collector.engine_shapes import Engines
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kvtrail_cli.client import DEFAULT_URL, CollectorClient
from kvtrail_cli.options import EngineName, Json, TokenFile, Url
from kvtrail_cli.output import OUT, milliseconds, print_json
from kvtrail_cli.shapes import BlockAnswer, BlockCopy, BlockWindow
from kvtrail_cli.stretch import engine_of, moment_of

NAME: Final = "block"
Block = Annotated[str, typer.Argument(help="The block's hash, as up to sixteen hexadecimal digits.")]
At = Annotated[str | None, typer.Option(help="A moment: ISO 8601 (UTC without an offset), or monotonic ns of the engine.")]


def command(
    block: Block,
    at: At = None,
    engine: EngineName = None,
    url: Url = DEFAULT_URL,
    token_file: TokenFile = None,
    *,
    json: Json = False,
) -> None:
    """Show every copy of a block, what ended it and why, or with --at where each copy of one engine was then.

    A moment is one of an engine's clock: without --engine that of the busiest, and its copies alone are shown.
    """
    path = f"/v1/blocks/{quote(block, safe='')}"
    with CollectorClient(url, token_file) as collector:
        at_ns = None
        if at is not None:
            named = engine_of(collector.get("/v1/engines", Engines), engine)
            engine, at_ns = named.engine, moment_of("--at", at, named)
        if json:
            print_json(collector.get_raw(path, engine=engine, at_ns=at_ns))
        else:
            OUT.print(_view(collector.get(path, BlockAnswer, engine=engine, at_ns=at_ns)))


def _view(answer: BlockAnswer) -> RenderableType:
    """Copies, what is unknown, and the chain of causes."""
    table = Table("engine", "tier", "slot", "from", "for", "ended by", "known", title=f"block {answer.block}")
    for copy in answer.copies:
        table.add_row(*_row(copy))
    nowhere = Text("at this moment no copy of it is known anywhere; without --at its whole life is shown")
    shown: list[RenderableType] = [table if answer.copies else nowhere]
    shown += [Text(_unknown(window), style="bold") for window in answer.unknown]
    shown += [Text(f"{milliseconds(link.t_ns)}  {link.text}") for link in answer.chain]
    return Group(*shown)


def _unknown(window: BlockWindow) -> str:
    """A stretch of which events are missing, in words."""
    if window.end_ns >= FOREVER_NS:
        return f"unknown from {milliseconds(window.start_ns)} on: no event is stored from then on"
    return f"unknown from {milliseconds(window.start_ns)} to {milliseconds(window.end_ns)}: events are missing"


def _row(copy: BlockCopy) -> tuple[str, ...]:
    """One stay of a copy; times on the engine's monotonic clock."""
    length = None if copy.from_ns is None or copy.to_ns is None else copy.to_ns - copy.from_ns
    return (
        f"{copy.engine}/{copy.rank}",
        copy.tier or "–",
        "–" if copy.slot is None else str(copy.slot),
        milliseconds(copy.from_ns),
        milliseconds(length if length is None or length >= 0 else None),  # less than nothing: a clock began anew meanwhile
        copy.ended_by or "–",
        copy.state,
    )
