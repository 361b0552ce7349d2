"""`kvtrail agent`: `recover` sends by hand what dead engines and shippers left behind, `relay` follows a live engine."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from kvtrail_agent.courier import ThreadCourier
from kvtrail_agent.recovery import recover as send_all
from kvtrail_agent.settings import AgentSettings
from kvtrail_agent.transports import open_transport
from kvtrail_schema.clock import SystemClock

from kvtrail_cli.client import DEFAULT_URL
from kvtrail_cli.commands.agent_poll import lmcache, trtllm
from kvtrail_cli.commands.agent_relay import relay
from kvtrail_cli.errors import Exit, InputInvalid
from kvtrail_cli.options import Json, KafkaOptionsFile
from kvtrail_cli.output import OUT, print_json, progress

APP = typer.Typer(help="The agent: what it left behind, and engines that it follows.", no_args_is_help=True)
for follower in (relay, trtllm, lmcache):
    APP.command()(follower)


class AgentRecover(msgspec.Struct, frozen=True):
    """What `kvtrail agent recover` answers: rings and spools sent whole, and those that are still there."""

    rings: int
    spools: int
    left: int
    schema: int = 1


@APP.callback()
def group() -> None:
    """The agent: what it left behind, and engines that it follows."""


@APP.command()
def recover(
    directory: Annotated[Path, typer.Argument(help="A ring_dir or a spool_dir.", metavar="DIR")],
    transport: Annotated[
        str,
        typer.Option(envvar="KVTRAIL_TRANSPORT", help="Where events go: http(s)://host:port, file:///directory, kafka://…"),
    ] = DEFAULT_URL,
    token_file: Annotated[Path | None, typer.Option(envvar="KVTRAIL_WRITE_TOKEN_FILE", help="Token for writing.")] = None,
    kafka_options_file: KafkaOptionsFile = None,
    *,
    json: Json = False,
) -> None:
    """Send the rings whose engine is gone and the spools whose ring is gone; ends with 1 when something could not be sent."""
    if not directory.is_dir():
        message = f"{directory}: no such directory; give the ring_dir or the spool_dir of the recorder"
        raise InputInvalid(message)
    opened = open_transport(transport, token_file, kafka_options_file)
    settings = AgentSettings(engine="recovered", transport=transport, token_file=token_file)
    with progress("bytes") as advance:
        found = send_all(directory, ThreadCourier(opened), settings, clock=SystemClock(), on_progress=advance)
    if json:
        print_json(AgentRecover(*found))
    else:
        OUT.print(f"sent {found.rings} rings and {found.spools} spools; {found.left} left in {directory}")
    raise typer.Exit(Exit.BAD if found.left else Exit.GOOD)
