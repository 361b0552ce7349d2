"""On what an explanation stands: what was compared with what, what was left out, and the command that asks the same."""

import shlex
from collections.abc import Iterator

from kvtrail_dashboards.answers import Attribution, Window
from kvtrail_dashboards.compute.figures import percent
from kvtrail_dashboards.compute.wall import WallTime


def basis_lines(attribution: Attribution, wall: WallTime) -> tuple[str, ...]:
    """One sentence for each thing that a reader of the verdict has to know; none where nothing was compared."""
    if attribution.window is None:
        return ()
    return tuple(_lines(attribution, wall))


def command_of(attribution: Attribution, engine: str) -> str:
    """What to type to get the same answer in a terminal."""
    words = ["kvtrail", "attribute", "--engine", engine]
    if attribution.window is not None:
        words += ["--start-ns", str(attribution.window.start_ns), "--end-ns", str(attribution.window.end_ns)]
    return shlex.join(words)


def _lines(attribution: Attribution, wall: WallTime) -> Iterator[str]:
    """The sentences, what was looked at first."""
    for name, window in (("Explained", attribution.window), ("Compared with", attribution.reference)):
        if window is not None:
            yield f"{name}: {_window(window, wall)}."
    if attribution.quantile is not None:
        tail = percent(1 - attribution.quantile)
        yield f"Looked at: the slowest {tail} of both (from P{attribution.quantile * 100:g} on), kind by kind of request."
    if attribution.why_not is not None:
        yield f"Not sure, because: {attribution.why_not}."
    for note in attribution.notes:
        yield f"{note[:1].upper()}{note[1:]}."


def _window(window: Window, wall: WallTime) -> str:
    """A stretch with its requests and how much of it was seen."""
    covered = "" if window.coverage is None else f", events cover {percent(window.coverage)} of it"
    return f"{wall.span(window)}, {window.requests:,} requests{covered}"
