"""How commands speak: answers on standard output, as a table for people or as one JSON object; progress on standard error."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import msgspec
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

_PIPE_WIDTH: Final = 140
_ANY_WIDTH: Final = 1 << 20
OUT: Final = Console(highlight=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)
ERR: Final = Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else _PIPE_WIDTH)
_MS_NS: Final = 1_000_000


def print_json(answer: object) -> None:
    """One object, on one line where it goes to a pipe, indented on a terminal."""
    raw = answer if isinstance(answer, bytes) else msgspec.json.encode(answer)
    text = msgspec.json.format(raw, indent=2 if sys.stdout.isatty() else 0)
    sys.stdout.write(text.decode() + "\n")
    sys.stdout.flush()


def print_whole(view: RenderableType) -> None:
    """A table of which nothing is left out: folded on a terminal, as wide as it is anywhere else."""
    out = OUT if sys.stdout.isatty() else Console(highlight=False, width=_ANY_WIDTH)
    out.print(view)


def note(text: str) -> None:
    """A line for people, on standard error, so that it never mixes with an answer."""
    ERR.print(text)


def milliseconds(ns: float | None) -> str:
    """A duration for people."""
    return "–" if ns is None else f"{ns / _MS_NS:,.1f} ms"


def percent(share: float | None) -> str:
    """A share from 0 to 1 for people."""
    return "–" if share is None else f"{share:.0%}"


class Advance(Protocol):
    """**Protocol:** called as work goes on, with how much is done and how much there is."""

    def __call__(self, done: int, total: int) -> None:
        """Show it."""
        ...


@contextmanager
def progress(title: str) -> Iterator[Advance]:
    """A bar on standard error while long work runs; nothing where standard error is no terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=ERR, transient=True, disable=not ERR.is_terminal) as bar:
        task = bar.add_task(title, total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield advance
