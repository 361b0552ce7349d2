"""`kvtrail demo`: engine, recorder and collector together, a fault at a random moment, and its explanation beside it."""

import secrets
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kvtrail_cli.demo.route import DemoTransport
from kvtrail_cli.errors import Exit
from kvtrail_cli.options import Json
from kvtrail_cli.output import OUT, note, print_json

NAME = "demo"
_LONG_ENOUGH_S = 60


class Fault(StrEnum):
    """What the demo breaks."""

    NONE = "none"
    NVME_SLOW = "nvme-slow"
    NVME_QUEUE = "nvme-queue"
    LONG_PREFILL = "long-prefill"


def command(
    fault: Annotated[Fault, typer.Option(help="What to break: none, nvme-slow, nvme-queue or long-prefill.")] = Fault.NVME_SLOW,
    seed: Annotated[int | None, typer.Option(help="Seed of load and fault; absent: a random one, which is printed.")] = None,
    duration: Annotated[float, typer.Option(min=20, help="Seconds of load.")] = 95.0,
    trace: Annotated[
        Path | None, typer.Option(help="Replay this trace in the Mooncake form instead of generated chats.")
    ] = None,
    directory: Annotated[Path, typer.Option("--dir", help="Where the store and the tiers' files lie.")] = Path("kvtrail-demo"),
    *,
    transport: Annotated[
        DemoTransport, typer.Option(help="How events travel: http, or kafka by a real broker.")
    ] = DemoTransport.HTTP,
    bootstrap: Annotated[
        str | None, typer.Option(help="With kafka: brokers to use; absent: KVTRAIL_TEST_KAFKA, or one that is started here.")
    ] = None,
    headless: Annotated[bool, typer.Option(help="End by itself; open no dashboard.")] = False,
    json: Json = False,
) -> None:
    """Run engine, recorder and collector; break something; explain the spike; leave the dashboard open."""
    from kvtrail_cli.demo.run import DemoChoice, run_demo, watch_dashboard  # noqa: PLC0415 - loads torch

    choice = DemoChoice(
        fault=fault.value,
        seed=secrets.randbelow(1_000_000) if seed is None else seed,
        duration_s=duration,
        trace=trace,
        directory=directory,
        transport=transport,
        bootstrap=bootstrap,
    )
    if duration < _LONG_ENOUGH_S:
        note(f"{duration:g} s are too few requests to judge a tail by: expect no verdict; the default is 95")
    with run_demo(choice) as (answer, collector_url):
        if json:
            print_json(answer)
        else:
            from kvtrail_cli.demo.view import demo_view  # noqa: PLC0415 - only people need it

            OUT.print(demo_view(answer))
        if not headless:
            watch_dashboard(collector_url)
    note(f"to ask again: kvtrail collector serve --store {directory / 'events.duckdb'}")
    raise typer.Exit(Exit.GOOD if answer.balanced else Exit.BAD)
