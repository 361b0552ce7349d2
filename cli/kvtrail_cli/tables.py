"""Answers as tables for people: pure, from the published shapes to what is printed."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from kvtrail_collector.attribution_shapes import NO_CODE, Attribution, Delta, Measure, OtherSpike, Verdict
from kvtrail_collector.loss_shapes import Loss, StreamLoss
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kvtrail_cli.output import percent

_NS_PER_S = 1_000_000_000


_NO_CODE: Final = f"{NO_CODE}; docs/explain.md says how to go on"


def attribution_view(found: Attribution) -> RenderableType:
    """The explanation of a spike: verdicts first, then where the excess lies, then whose work filled the queue."""
    if found.window is None:
        return Text(_sentence(found.why_not or "no spike: nothing stands out"))
    parts: list[RenderableType] = [Text(_headline(found), style="bold")]
    parts += [verdict_view(verdict) for verdict in found.verdicts]
    if not found.verdicts:
        parts.append(Text(f"No verdict: {found.why_not or _NO_CODE}."))
    parts += [Text(f"note: {note}", style="dim") for note in found.notes]
    parts += other_spikes_view(found.other_spikes)
    if found.components:
        parts.append(_components(found.components))
    if found.blame:
        parts.append(_blame(found))
    if found.exemplars:
        parts.append(Text(f"worst requests: {', '.join(found.exemplars[:5])}   (kvtrail why REQUEST)"))
    return Group(*parts)


def other_spikes_view(spikes: Sequence[OtherSpike]) -> list[RenderableType]:
    """That there are more spikes than the one explained, and how to have them explained."""
    if not spikes:
        return []
    lasted_s = ((spike.end_ns - spike.start_ns) / _NS_PER_S for spike in spikes)
    told = ", ".join(f"{own_s:.1f} s, {spike.requests:,} requests" for own_s, spike in zip(lasted_s, spikes, strict=True))
    number = f"{len(spikes)} other spike{'s' if len(spikes) > 1 else ''}"
    return [Text(f"note: {number} besides ({told}); ask for each with --window, see /v1/spikes for when", style="dim")]


def _headline(found: Attribution) -> str:
    """The spike in one line."""
    window = found.window
    assert window is not None, "a headline is made for a window"
    lasted_s = (window.end_ns - window.start_ns) / _NS_PER_S
    quantile = f"P{found.quantile * 100:g}" if found.quantile is not None else "tail"
    excess = (
        f"{quantile} {found.excess_quantile_ms:+,.0f} ms" if found.excess_quantile_ms is not None else f"{quantile} not known"
    )
    device = f", {found.device}" if found.device else ""
    mean = f", mean of that tail {found.excess_tail_ms:+,.0f} ms" if found.excess_tail_ms is not None else ""
    name, counted = "Spike" if found.components else "Window", "requests" if found.measure is Measure.TTFT else "gaps"
    since = "" if found.clock_offset_ns is None else f" from {_moment(window.start_ns + found.clock_offset_ns)}"
    coverage = f"coverage {percent(window.coverage)}"
    return f"{name} of {lasted_s:.1f} s{since}, {window.requests:,} {counted}, {excess}{mean}, {coverage}{device}"


def _moment(wall_ns: int) -> str:
    """A wall time for people, in UTC, to the second."""
    return f"{datetime.fromtimestamp(wall_ns // _NS_PER_S, UTC):%Y-%m-%d %H:%M:%SZ}"


def _sentence(text: str) -> str:
    """A text with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def verdict_view(verdict: Verdict) -> Text:
    """One verdict: what, where, how sure, on which figures, what to do."""
    text = Text()
    where = " ".join(part for part in (verdict.tier, verdict.tenant) if part)
    text.append(f"{verdict.code}{' on ' + where if where else ''}", style="bold red")
    text.append(f"  {percent(verdict.share)} of the excess, confidence {percent(verdict.confidence)} ({verdict.basis})\n")
    evidence = ", ".join(f"{name} {_shown(value)}" for name, value in verdict.evidence.items())
    text.append(f"  evidence: {evidence}\n  action: {verdict.action}")
    if verdict.also:
        text.append(f"\n  also: {', '.join(verdict.also)}")
    return text


def _shown(value: float | str) -> str:
    """A figure of evidence, short."""
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _components(deltas: Iterable[Delta]) -> Table:
    """The excess of the tail by component and tier."""
    table = Table("component", "tier", "excess ms", "95 % interval", "share", box=None, header_style="dim")
    for delta in (listed := list(deltas)):
        interval = f"{delta.low_ms:,.1f} … {delta.high_ms:,.1f}"
        table.add_row(str(delta.component), delta.tier or "", f"{delta.excess_ms:,.1f}", interval, percent(delta.share))
    table.add_row("sum", "", f"{sum(delta.excess_ms for delta in listed):,.1f}", "", "", style="dim")
    return table


def _blame(found: Attribution) -> Table:
    """Behind whose work the requests of the window waited."""
    table = Table("queue", "behind tenant", "kind of work", "waited", "share", box=None, header_style="dim")
    for row in found.blame:
        waited = f"{row.waited_ns / 1e6:,.0f} ms"
        table.add_row(row.queue, row.tenant or "–", row.kind, waited, percent(row.share))
    return table


def loss_view(loss: Loss) -> RenderableType:
    """The books of every stream, and what they say in one line."""
    if not loss.streams:
        return Text("No stream was ever heard of: there are no books to balance.", style="bold")
    table = Table(
        "engine", "epoch", "rank", "produced", "stored", "dropped", "in flight", "unaccounted", box=None, header_style="dim"
    )
    for stream in loss.streams:
        table.add_row(
            stream.engine,
            f"{stream.epoch:016x}",
            str(stream.rank),
            f"{stream.produced:,}",
            f"{stream.stored:,}",
            dropped_text(stream),
            f"{stream.in_flight:,}",
            f"{stream.unaccounted:,}",
        )
    balance = "balanced" if loss.balanced else "NOT BALANCED"
    holes = [f"{s.engine}: seq {first}–{last}" for s in loss.streams for first, last in s.gaps[:5]]
    lines: list[RenderableType] = [Text(f"Books: {balance}.", style="bold" if loss.balanced else "bold red"), table]
    return Group(*lines, *(Text(f"unexplained hole in {hole}") for hole in holes))


def dropped_text(stream: StreamLoss) -> str:
    """What was dropped, by stage and reason."""
    return ", ".join(f"{drop.count:,} {drop.stage}/{drop.reason}" for drop in stream.dropped) or "0"
