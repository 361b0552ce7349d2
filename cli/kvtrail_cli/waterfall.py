"""The ledger of one request as a waterfall for people: each part begins where the one above it ends."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kvtrail_cli.output import milliseconds, percent
from kvtrail_cli.shapes import WhyAnswer, WhyPart, WhyWait

_WIDTH = 40


def why_view(answer: WhyAnswer) -> RenderableType:
    """Parts, hidden work, what it waited behind, the chain of causes, and what recomputing would have cost."""
    until = "so far, without a first token" if answer.censored else "to the first token"
    device = f"   ({answer.device})" if answer.device else ""
    shown: list[RenderableType] = [Text(f"{answer.request}: {milliseconds(answer.ttft_ns)} {until}{device}", style="bold")]
    shown.append(_waterfall(answer))
    if answer.hidden:
        shown.append(Text("hidden behind it: " + _listed(answer.hidden)))
    shown += [_wait_line(wait) for wait in answer.waited_on[:5]]
    shown += [Text(f"because: {link.text}") for link in answer.chain[:8]]
    if answer.gaps:
        shown.append(Text(f"slowest gap between tokens: {milliseconds(answer.gaps[0].ns)}: {_listed(answer.gaps[0].parts)}"))
    if answer.recompute_estimate_ns is not None:
        shown.append(Text(f"recomputing instead, by the engine's own estimate: {milliseconds(answer.recompute_estimate_ns)}"))
    return Group(*shown)


def _waterfall(answer: WhyAnswer) -> Table:
    """One row a part, with a bar at its place in the sum."""
    table = Table(box=None, show_header=False, padding=(0, 1))
    before_ns = 0
    for part in answer.parts:
        bar = _bar(before_ns, part.ns, answer.ttft_ns)
        share = percent(part.ns / answer.ttft_ns) if answer.ttft_ns else ""
        table.add_row(_name(part), bar, milliseconds(part.ns), share)
        before_ns += part.ns
    table.add_row(Text("sum", style="dim"), "", milliseconds(before_ns), "")
    return table


def _bar(before_ns: int, ns: int, total_ns: int) -> str:
    """A bar as long as its share, at least one mark."""
    start = before_ns * _WIDTH // max(total_ns, 1)
    length = max(1, (before_ns + ns) * _WIDTH // max(total_ns, 1) - start)
    return (" " * start + "█" * length)[:_WIDTH]


def _name(part: WhyPart) -> str:
    """A component with its tier and reason."""
    return " ".join(word for word in (part.component, part.tier, part.reason) if word)


def _listed(parts: Iterable[WhyPart]) -> str:
    """Parts in one line."""
    return ", ".join(f"{_name(part)} {milliseconds(part.ns)}" for part in parts)


def _wait_line(wait: WhyWait) -> Text:
    """Behind whom the request stood in a queue."""
    work = f"op {wait.op} of {wait.owner}" if wait.op is not None else "nobody (the queue was not served)"
    return Text(f"waited {milliseconds(wait.ns)} in the queue of {wait.tier} behind {work}")
