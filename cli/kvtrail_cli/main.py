"""The `kvtrail` command. Each verb is a file in `commands/`; what it needs is imported when it runs."""

import signal
import sys
from typing import Annotated, Final, NoReturn, Protocol, runtime_checkable

import typer
from kvtrail_agent.version import VERSION

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
    import_,
    loss,
    rebuild,
    sql,
    why,
)
from kvtrail_cli.errors import CommandError, Exit, command_errors
from kvtrail_cli.output import OUT


@runtime_checkable
class _WrongWords(Protocol):
    """**Protocol:** the error of a wrong flag or verb. Typer gives it no name; newer ones have a click of their own."""

    ctx: typer.Context | None

    def format_message(self) -> str:
        """What is wrong."""
        ...


def _tell_version(wanted: bool) -> None:
    """Print the version and end, where that was asked for."""
    if wanted:
        OUT.print(f"kvtrail {VERSION}")
        raise typer.Exit


APP: Final = typer.Typer(
    name="kvtrail",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
APP.command(name=import_.NAME, help=import_.HELP)(import_.command)
for verb in (demo, diagnose, attribute, why, block, loss, compare, dashboard, doctor, gate, rebuild, sql):
    APP.command(name=verb.NAME)(verb.command)
APP.add_typer(engine.APP, name="engine")
APP.add_typer(agent.APP, name="agent")
APP.add_typer(alerts.APP, name="alerts")
APP.add_typer(collector.APP, name="collector")
APP.add_typer(bench.APP, name="bench")
APP.add_typer(drill.APP, name="drill")
APP.add_typer(export.APP, name="export")


@APP.callback()
def group(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A flight recorder for the KV cache of LLM inference engines."""


def run() -> None:
    """Run the command line; a command that cannot be done ends with 2 and one line on standard error."""
    _end_in_order_when_told()
    try:
        with command_errors():
            status = APP(standalone_mode=False)
    except CommandError as error:
        _cannot(str(error))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except Exception as error:
        if not isinstance(error, _WrongWords):
            raise
        _cannot(_usage(error))
    sys.exit(status if isinstance(status, int) else Exit.GOOD)


def _cannot(problem: str) -> NoReturn:
    """Say why nothing was done, on one line, or show the help; and end."""
    text = problem if "\n" in problem else f"kvtrail: {problem}"
    print(text, file=sys.stderr)  # noqa: T201 - the one place where errors are told
    sys.exit(Exit.IMPOSSIBLE)


def _usage(error: _WrongWords) -> str:
    """What is wrong with the words of a command, and where to look; the help itself where no words were given."""
    message = error.format_message()
    if "\n" in message or error.ctx is None:
        return message
    return f"{message.rstrip('.')}: see `{error.ctx.command_path} --help`"


def _end_in_order_when_told() -> None:
    """Let SIGTERM, and a SIGINT that a shell made us ignore, unwind what was started: no collector or page stays behind."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)


if __name__ == "__main__":
    run()
