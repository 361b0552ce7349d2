"""The comparison for people: what won where first, then the figures behind it."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kvtrail_cli.compare.shapes import Baseline, Compare, PathFigures, Sweep, scenario_title
from kvtrail_cli.output import percent
from kvtrail_cli.quantiles import Quantiles

_MIB = 1024 * 1024


def compare_view(answer: Compare) -> RenderableType:
    """Everything, from the top."""
    equal = "equal on all paths, bit for bit" if answer.outputs_equal else "NOT EQUAL: a path gave another answer"
    parts: list[RenderableType] = [Text(f"Outputs: {equal}.", style="bold" if answer.outputs_equal else "bold red")]
    parts += [Text(f"left out: {skipped.path}: {skipped.reason}", style="yellow") for skipped in answer.skipped]
    parts += [Text(), _winners(answer), Text(), _baselines(answer.baselines), Text()]
    parts += [Text("all scenarios together", style="bold"), _figures(answer.paths)]
    for scenario in answer.scenarios:
        parts += [Text(), Text(scenario_title(scenario), style="bold"), _figures(scenario.paths)]
    if answer.sweep is not None:
        parts += [Text(), _sweep(answer.sweep)]
    notes = [answer.floors, f"SLO: TTFT within {answer.slo_ttft_ms:g} ms. Ties: {answer.tie}. Seed {answer.seed}."]
    reason = answer.paths[0].energy_j_reason
    notes += [f"energy: not known ({reason})"] if reason else []
    return Group(*parts, Text(), *(Text(note, style="dim") for note in notes), Text(answer.statement, style="bold"))


def _winners(answer: Compare) -> Table:
    """Who won each scenario, with the median TTFT of everybody."""
    paths = [figures.path for figures in answer.paths]
    table = Table("TTFT P50, ms", *paths, "lowest", box=None, header_style="dim")
    for scenario in answer.scenarios:
        medians = [_ms(figures.ttft_ms.p50) for figures in scenario.paths]
        table.add_row(scenario.scenario, *medians, ", ".join(scenario.winners))
    return table


def _baselines(baselines: Sequence[Baseline]) -> Table:
    """One request at a time."""
    table = Table("TTFT of one request alone, ms", "cold", "warm", "partial hit", "full miss", box=None, header_style="dim")
    for line in baselines:
        table.add_row(line.path, _ms(line.cold_ms), _ms(line.warm_ms), _ms(line.partial_ms), _ms(line.miss_ms))
    return table


def _figures(paths: Sequence[PathFigures]) -> Table:
    """A line a path; the device stands in each."""
    columns = ("requests", "restored MiB", "TTFT P50/P95/P99 ms", "TPOT P50/P95/P99 ms", "goodput/s", "gpu idle", "errors")
    table = Table("path", *columns, "energy J", "device", box=None, header_style="dim")
    for one in paths:
        table.add_row(
            one.path,
            str(one.requests),
            f"{one.restore_bytes / _MIB:,.1f}",
            _three(one.ttft_ms),
            _three(one.tpot_ms),
            f"{one.goodput_rps:,.1f}",
            percent(one.gpu_idle),
            percent(one.error_rate),
            "–" if one.energy_j is None else f"{one.energy_j:,.1f}",
            one.device,
        )
    return table


def _sweep(sweep: Sweep) -> Table:
    """A line a value."""
    title = f"{sweep.parameter} ({sweep.path}; {sweep.scenario})"
    table = Table(
        title, "prefetch used/issued", "restore P95 ms", "gpu idle", "TTFT P50/P95/P99 ms", box=None, header_style="dim"
    )
    for point in sweep.points:
        used = f"{point.prefetches_used:,}/{point.prefetches_issued:,}"
        table.add_row(point.value, used, _ms(point.restore_p95_ms), percent(point.gpu_idle), _three(point.ttft_ms))
    return table


def _three(found: Quantiles) -> str:
    """Three quantiles in one cell."""
    return " / ".join(_ms(value) for value in (found.p50, found.p95, found.p99))


def _ms(value: float | None) -> str:
    """A figure in milliseconds, or a dash."""
    return "–" if value is None else f"{value:,.1f}"
