"""The reference of the command line: what `--help` says, verb by verb."""

from collections.abc import Sequence
from typing import Final, Protocol, cast

import typer
from kvtrail_cli.main import APP

_HEAD: Final = """# Commands

Generated from the code by `make generate`; do not edit.

Exit status: 0 done and good; 1 done, and the answer is bad; 3 undecided; 2 could not be done, with one line on standard
error that says what, where and what to do. `--json` prints one object. Progress stands on standard error, on a terminal
only.
"""


class _Parameter(Protocol):
    """**Protocol:** what is read of an argument or option."""

    name: str | None
    opts: list[str]
    secondary_opts: list[str]
    param_type_name: str
    default: object
    envvar: str | Sequence[str] | None


class _Command(Protocol):
    """**Protocol:** what is read of a verb."""

    help: str | None
    params: Sequence[_Parameter]


def commands_page() -> str:
    """Every verb with its arguments and options."""
    root = cast("_Command", typer.main.get_command(APP))
    return _HEAD + "".join(_section(command, name) for name, command in _verbs(root, "kvtrail"))


def _verbs(command: _Command, name: str) -> list[tuple[str, _Command]]:
    """All commands below a group, by their full names."""
    below: dict[str, _Command] | None = getattr(command, "commands", None)
    if below is None:
        return [(name, command)]
    return [found for word, child in sorted(below.items()) for found in _verbs(child, f"{name} {word}")]


def _section(command: _Command, name: str) -> str:
    """One verb."""
    rows = [_row(parameter) for parameter in command.params if parameter.name != "help"]
    table = "| parameter | default | meaning |\n|---|---|---|\n" + "".join(rows)
    return f"\n## {name}\n\n{command.help}\n\n{table}"


def _row(parameter: _Parameter) -> str:
    """One argument or option."""
    names = ", ".join(f"`{text}`" for text in (*parameter.opts, *parameter.secondary_opts))
    shown = parameter.name.upper() if parameter.param_type_name == "argument" and parameter.name else names
    default = "" if parameter.default in {None, False} else f"`{parameter.default}`"
    variable = f" Variable `{parameter.envvar}`." if parameter.envvar else ""
    return f"| {shown} | {default} | {getattr(parameter, 'help', None) or ''}{variable} |\n"
