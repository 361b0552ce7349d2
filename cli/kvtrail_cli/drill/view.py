"""Accuracy for people: the figures with their intervals, then what was found for what was injected."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kvtrail_cli.drill.shapes import Accuracy, Cell, Rate


def accuracy_view(answer: Accuracy) -> RenderableType:
    """Figures, confusion matrix, faults."""
    share = "–" if answer.unattributed_p99 is None else f"{answer.unattributed_p99:.2%}"
    return Group(
        Text(f"{answer.runs:,} {answer.mode} runs, seeds {answer.seeds}, tail at least {answer.least_lift:.0%} longer"),
        _rates(answer),
        Text(f"{answer.abstained} abstained; unattributed at P99: {share} ({answer.device})"),
        Text(f"{len(answer.disturbed)} runs disturbed by other work on the machine: run those again on a quiet one")
        if answer.disturbed
        else Text(),
        Text(),
        _confusion(answer.confusion),
        Text(),
        _faults(answer),
    )


def _rates(answer: Accuracy) -> Table:
    """Each rate with its interval."""
    table = Table("", "value", "95 %", "of", box=None, header_style="dim")
    named = {
        "precision of the first verdict": answer.top1_precision,
        "recall of the first verdict": answer.top1_recall,
        "precision under a shift of the mix": answer.mix_precision,
        "two faults, two codes": answer.both_named,
        "false alarms": answer.false_alarm_rate,
    }
    for name, found in named.items():
        table.add_row(name, *_rate(found))
    return table


def _rate(found: Rate) -> tuple[str, str, str]:
    """One rate as text."""
    if found.value is None or found.low is None or found.high is None:
        return "–", "", "0"
    return f"{found.value:.3f}", f"{found.low:.3f}–{found.high:.3f}", f"{found.count}/{found.of}"


def _confusion(cells: tuple[Cell, ...]) -> Table:
    """What was found for what was injected."""
    table = Table("injected", "found first", "tier", "runs", "right", box=None, header_style="dim")
    last = ""
    for cell in cells:
        table.add_row(
            cell.injected if cell.injected != last else "",
            cell.found or "nothing",
            cell.tier or "",
            str(cell.runs),
            str(cell.right),
        )
        last = cell.injected
    return table


def _faults(answer: Accuracy) -> Table:
    """Right, abstained and lift by fault."""
    table = Table("fault", "runs", "right", "abstained", "lift P50", box=None, header_style="dim")
    for fault in answer.faults:
        lift = "–" if fault.lift_p50 is None else f"{fault.lift_p50:+.0%}"
        table.add_row(fault.injected, str(fault.runs), str(fault.right), str(fault.abstained), lift)
    return table
