"""The `kvtrail` command. Each verb is a file in `commands/`; what it needs is imported when it runs."""

import signal
import sys
from typing import Final

import typer

from kvtrail_cli.commands import (
    agent,
    alerts,
    attribute,
    bench,
    block,
    collector,
    compare,
    dashboard,
    demo,
    diagnose,
    doctor,
    drill,
    engine,
    export,
    gate,
    loss,
    rebuild,
    sql,
    why,
)
from kvtrail_cli.errors import CommandError, Exit, command_errors

APP: Final = typer.Typer(
    name="kvtrail",
    help="A flight recorder for the KV cache of LLM inference engines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for verb in (demo, diagnose, attribute, why, block, loss, compare, dashboard, doctor, gate, rebuild, sql):
    APP.command(name=verb.NAME)(verb.command)
APP.add_typer(engine.APP, name="engine")
APP.add_typer(agent.APP, name="agent")
APP.add_typer(alerts.APP, name="alerts")
APP.add_typer(collector.APP, name="collector")
APP.add_typer(bench.APP, name="bench")
APP.add_typer(drill.APP, name="drill")
APP.add_typer(export.APP, name="export")


def run() -> None:
    """Run the command line; a command that cannot be done ends with 2 and one line on standard error."""
    _end_in_order_when_told()
    try:
        with command_errors():
            APP()
    except CommandError as error:
        print(f"kvtrail: {error}", file=sys.stderr)  # noqa: T201 - the one place where errors are told
        sys.exit(Exit.IMPOSSIBLE)
    except KeyboardInterrupt:
        sys.exit(130)


def _end_in_order_when_told() -> None:
    """Let SIGTERM, and a SIGINT that a shell made us ignore, unwind what was started: no collector or page stays behind."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)


if __name__ == "__main__":
    run()
