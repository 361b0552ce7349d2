"""The totals of an import as an answer, and the answer for people."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kvtrail_agent.importers.format import Format
from kvtrail_agent.importers.importing import Problem, StreamTotal, Totals
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kvtrail_cli.importing.shapes import Imported, ImportedStream, ImportMissing, ImportProblem

_SHOWN_PROBLEMS: Final = 20
_NOT_JSON: Final = "mend or delete the line; all others were imported"
_BROKEN: Final = (
    "compare it with the format in the engine's documentation; it is kept as an `error` event where its stream is known"
)


def imported(format_: Format, paths: Sequence[Path], to: str, totals: Totals) -> Imported:
    """The answer."""
    streams = sorted(totals.streams.values(), key=lambda one: one.stream)
    return Imported(
        format=format_.name,
        files=tuple(str(path) for path in paths),
        to=to,
        records=totals.records,
        seen=dict(sorted(totals.seen.items())),
        events=totals.events,
        streams=tuple(_stream(one) for one in streams),
        unknown=dict(sorted(totals.unknown.items())),
        remarks=dict(sorted(totals.remarks.items())),
        quarantined=totals.quarantined,
        problems=tuple(_problem(one) for one in totals.problems),
        missing=tuple(ImportMissing(one.what, one.so_what) for one in format_.missing),
        left_out=format_.left_out,
    )


def import_view(answer: Imported) -> RenderableType:
    """The answer for people: streams, what was seen, what is wrong, what the format cannot tell."""
    table = Table(
        "engine", "epoch", "rank", "events", "lost", title=f"{answer.format}: {answer.records:,} records → {answer.to}"
    )
    for one in answer.streams:
        table.add_row(one.engine, f"{one.epoch:016x}", str(one.rank), f"{one.events:,}", f"{one.lost:,}")
    lines = [
        *_counts("read", answer.seen),
        *_counts("unknown, and kept", answer.unknown),
        *(f"note: {count:,} {what}" for what, count in answer.remarks.items()),
        *(f"not told: {one.what}: {one.so_what}" for one in answer.missing),
        *([f"left out on purpose: {', '.join(answer.left_out)}"] if answer.left_out else []),
        *_problems(answer),
    ]
    return Group(table, Text("\n".join(lines)))


def _counts(title: str, counts: dict[str, int]) -> list[str]:
    """Counts on one line; no line where there are none."""
    return [f"{title}: {', '.join(f'{name} {count:,}' for name, count in counts.items())}"] if counts else []


def _problems(answer: Imported) -> list[str]:
    """What could not be read, the first of it one by one."""
    shown = answer.problems[:_SHOWN_PROBLEMS]
    lines = [f"quarantined: {one.where}: {one.what}; {one.do}" for one in shown]
    more = answer.quarantined - len(shown)
    return [*lines, f"quarantined: {more:,} more; --json tells the first thousand"] if more > 0 else lines


def _stream(one: StreamTotal) -> ImportedStream:
    """What came into one stream."""
    return ImportedStream(one.stream.engine, one.stream.epoch, one.stream.rank, one.events, one.lost)


def _problem(one: Problem) -> ImportProblem:
    """One problem with what to do about it."""
    return ImportProblem(one.where, one.what, _NOT_JSON if one.what.startswith("not JSON") else _BROKEN)
