"""`kvtrail gate`: may the candidate take the place of the baseline? Ends with 0 pass, 1 fail, 3 undecided."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Final

import typer
from kvtrail_collector.gate_shapes import Condition, Gate, GateResult
from kvtrail_schema.clock import SystemClock
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kvtrail_cli.client import DEFAULT_URL, CollectorClient
from kvtrail_cli.errors import Exit, InputInvalid
from kvtrail_cli.options import Json, TokenFile, Url
from kvtrail_cli.output import OUT, print_json
from kvtrail_cli.recording_folder import check_recording, stored_recording

NAME = "gate"
_ENDS: Final = {GateResult.PASS: Exit.GOOD, GateResult.FAIL: Exit.BAD, GateResult.UNDECIDED: Exit.UNDECIDED}
_WHAT: Final = "A folder that a recorder wrote (file://), or a run of a collector: ENGINE, or ENGINE@EPOCH as loss shows it."


def command(
    baseline: Annotated[str, typer.Argument(help=f"What runs now. {_WHAT}")],
    candidate: Annotated[str, typer.Argument(help="What shall run, the same way.")],
    threshold: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE in place of a condition's default; may be repeated.")
    ] = None,
    url: Url = DEFAULT_URL,
    token_file: TokenFile = None,
    *,
    json: Json = False,
) -> None:
    """Compare two runs, condition by condition; what is not sure is undecided, and never passed."""
    folders = [Path(text) for text in (baseline, candidate) if _is_folder(text)]
    if len(folders) == 1:
        raise InputInvalid(f"{folders[0]} is a folder and the other run is not: give two folders, or two runs of a collector")
    for folder in folders:
        check_recording(folder)
    if folders:
        found = gate_of_folders(folders[0], folders[1], threshold or [])
    else:
        with CollectorClient(url, token_file) as collector:
            found = collector.get("/v1/gates", Gate, baseline=baseline, candidate=candidate, threshold=threshold or [])
    if json:
        print_json(found)
    else:
        OUT.print(_view(found))
    raise typer.Exit(_ENDS[found.result])


def _is_folder(text: str) -> bool:
    """Whether a folder is meant, and not a run of a collector.

    Raises:
        InputInvalid: a path is meant, and it is no folder.
    """
    path = Path(text)
    if path.is_dir():
        return True
    if path.is_file():
        message = f"{text} is a file: give the folder that the recorder wrote into (transport file:///…)"
        raise InputInvalid(message)
    if text.startswith(("/", "./", "../", "~", "file:")) or text.endswith("/"):
        message = f"{text}: there is no such folder: give one that a recorder wrote into, as a plain path"
        raise InputInvalid(message)
    return False


def gate_of_folders(baseline: Path, candidate: Path, texts: list[str]) -> Gate:
    """Read two recordings into memory, and compare them.

    Raises:
        InputInvalid: a segment is damaged, or is none.
    """
    from kvtrail_collector.gate_store import Run, gate_runs  # noqa: PLC0415 - loads a database only where it is used
    from kvtrail_collector.routes.gates import thresholds_of  # noqa: PLC0415 - as above

    with ExitStack() as stack:
        runs = [Run(stack.enter_context(stored_recording(folder))) for folder in (baseline, candidate)]
        return gate_runs(runs[0], runs[1], SystemClock().wall_ns(), thresholds_of(texts))


def _view(found: Gate) -> RenderableType:
    """What differs, then each condition."""
    table = Table("condition", "baseline", "candidate", "interval", "threshold", "result", "note")
    for condition in found.conditions:
        table.add_row(*_row(condition))
    differs = [Text(f"manifest: {each.member}: {each.baseline} -> {each.candidate}") for each in found.manifest_diff]
    return Group(*differs, table, Text(found.result.value.upper(), style="bold"))


def _row(condition: Condition) -> tuple[str, ...]:
    """One condition."""
    low, high = _figure(condition.low), _figure(condition.high)
    interval = "–" if condition.low is None else f"{low} to {high}"
    figures = (_figure(condition.baseline), _figure(condition.candidate), interval, f"{condition.threshold:g}")
    return (condition.name, *figures, condition.result.value, condition.note)


def _figure(value: float | None) -> str:
    """A figure for people."""
    return "–" if value is None else f"{value:.4g}"
