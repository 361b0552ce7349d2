"""Storms for people: each run, then all of them."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kvtrail_cli.drill.storm_shapes import Storms


def storms_view(found: Storms) -> RenderableType:
    """Each run in a line, and the figures of all."""
    table = Table("seed", "applied s", "released s", "P99 before ms", "in the storm", "after", box=None, header_style="dim")
    for run in found.runs:
        latencies = (run.reference_p99_ms, run.storm_p99_ms, run.after_p99_ms)
        table.add_row(str(run.seed), _text(run.applied_s, 2), _text(run.released_s, 2), *(_text(each, 1) for each in latencies))
    summary = (
        f"applied within {_text(found.applied_p95_s, 2)} s (P95); P99 of the time to first token "
        f"{_text(found.reference_p99_ms, 1)} ms before, {_text(found.storm_p99_ms, 1)} in the storm, "
        f"{_text(found.after_p99_ms, 1)} after ({found.device})"
    )
    return Group(Text(found.floors), table, Text(summary), Text("passed" if found.passed else "FAILED", style="bold"))


def _text(value: float | None, digits: int) -> str:
    """A figure, or that there is none."""
    return "–" if value is None else f"{value:,.{digits}f}"
