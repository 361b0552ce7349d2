"""Verdicts of every basis for people: what is wrong, on which figures, what to do, and what could not be judged."""

from collections.abc import Sequence
from typing import Final

from kvtrail_collector.attribution_shapes import Verdict
from kvtrail_collector.coverage import Missing
from kvtrail_collector.diagnose_shapes import Verdicts
from rich.console import Group, RenderableType
from rich.text import Text

from kvtrail_cli.output import percent
from kvtrail_cli.tables import other_spikes_view

_NS_PER_S: Final = 1_000_000_000
_MOST_MISSING: Final = 8
_BLAMED: Final = {"population": "of the excess", "mechanism": "of what was looked at", "invariant": ""}


def verdicts_view(found: Verdicts) -> RenderableType:
    """All verdicts in their order, then what was missing for a surer answer."""
    parts: list[RenderableType] = [Text(_headline(found), style="bold")]
    parts += [_verdict(verdict) for verdict in found.verdicts]
    if found.unexplained is not None:
        parts.append(Text(f"no verdict on the spike: {found.unexplained}; see `kvtrail attribute`"))
    parts += [Text(f"note: {note}", style="dim") for note in found.notes]
    parts += other_spikes_view(found.other_spikes)
    parts += _missing(found.missing)
    return Group(*parts)


def _headline(found: Verdicts) -> str:
    """How much was looked at, and how much of it is wrong."""
    device = f", {found.device}" if found.device else ""
    if found.window is None:
        return f"No events{device}."
    lasted_s = (found.window.end_ns - found.window.start_ns) / _NS_PER_S
    count = len(found.verdicts)
    verdicts = _count(count, is_slower=found.unexplained is not None)
    lasted = f"{lasted_s:,.1f} s" if lasted_s >= 1 else f"{lasted_s * 1_000:.0f} ms"
    requests = f"{found.window.requests:,} request{'' if found.window.requests == 1 else 's'}"
    return f"{verdicts.capitalize()} in {lasted}, {requests}, coverage {percent(found.coverage)}{device}."


def _count(verdicts: int, *, is_slower: bool) -> str:
    """How many verdicts, and whether requests were slower besides; nothing is wrong only where neither is."""
    spike = "requests were slower for a while, and it is not known why," if is_slower else "nothing is wrong"
    if not verdicts:
        return spike
    counted = f"{verdicts} verdict{'s' if verdicts > 1 else ''}"
    return f"{counted}; {spike}" if is_slower else counted


def _verdict(verdict: Verdict) -> Text:
    """One verdict: what, where, how sure, on which figures, which events, what to do."""
    text = Text()
    where = " ".join(part for part in (verdict.tier, verdict.tenant) if part)
    text.append(f"{verdict.code}{' on ' + where if where else ''}", style="bold red")
    blamed = _BLAMED.get(verdict.basis, "")
    share = f"{percent(verdict.share)} {blamed}, " if blamed else ""
    text.append(f"  {share}confidence {percent(verdict.confidence)} ({verdict.basis})\n")
    text.append(f"  evidence: {', '.join(f'{name} {_shown(value)}' for name, value in verdict.evidence.items())}\n")
    if verdict.events:
        seen = ", ".join(f"{event.engine}/{event.rank} seq {event.seq}" for event in verdict.events[:3])
        text.append(f"  events: {seen}\n")
    text.append(f"  action: {verdict.action}")
    if verdict.also:
        text.append(f"\n  also: {', '.join(verdict.also)}")
    return text


def _shown(value: float | str) -> str:
    """A figure of evidence, short."""
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _missing(missing: Sequence[Missing]) -> list[RenderableType]:
    """What could not be judged, shortened; `--json` has all of it."""
    lines: list[RenderableType] = [Text(f"missing: {one.kind}: {one.so_what}", style="dim") for one in missing[:_MOST_MISSING]]
    rest = len(missing) - _MOST_MISSING
    return lines if rest <= 0 else [*lines, Text(f"… and {rest} more (--json lists them)", style="dim")]
