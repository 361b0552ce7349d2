"""Prefetches for people: what became of them, over time and in all, and for whom and why they were in vain."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kvtrail_dashboards.compute.bytes import size
from kvtrail_dashboards.compute.figures import duration, percent
from kvtrail_dashboards.compute.names import Names, name_of
from kvtrail_dashboards.compute.now import Mood, Tile
from kvtrail_dashboards.compute.wall import moment
from kvtrail_dashboards.page_answers import PrefetchFigures, PrefetchFlow, PrefetchTimes

OUTCOMES: Final = ("used", "wasted", "cancelled", "open")
_MUCH: Final = 0.25


@dataclass(frozen=True, slots=True)
class OutcomePoint:
    """So many of the blocks that were issued in one bucket ended so."""

    start: datetime
    end: datetime
    outcome: str
    blocks: int


@dataclass(frozen=True, slots=True)
class LossLine:
    """Blocks in vain, for one reason, tier and tenant."""

    outcome: str
    reason: str
    tier: str
    tenant: str
    blocks: int
    bytes: int
    share: float


def outcomes(figures: PrefetchFigures) -> tuple[tuple[str, int], ...]:
    """What became of issued blocks; the parts add up to what was issued, unless the record has holes."""
    ended = figures.used + figures.wasted + figures.cancelled
    counts = (figures.used, figures.wasted, figures.cancelled, max(figures.issued - ended, 0))
    return tuple(zip(OUTCOMES, counts, strict=True))


def prefetch_tiles(flow: PrefetchFlow) -> tuple[Tile, ...]:
    """The figures that say whether it pays."""
    total = flow.total
    ended = total.used + total.wasted + total.cancelled
    used = total.used / ended if ended else None
    late = total.deadline_missed / total.issued if total.issued else None
    wasted = total.wasted_bytes / total.bytes if total.bytes else None
    return (
        Tile("Issued", f"{total.issued:,} blocks", size(total.bytes)),
        Tile("Used", percent(used), f"{total.used:,} of {ended:,} that ended", _mood(used is not None and used < 1 - _MUCH)),
        Tile("Wasted", percent(wasted), f"{size(total.wasted_bytes)}, {total.wasted:,} blocks", _mood((wasted or 0) > _MUCH)),
        Tile("Deadline missed", percent(late), f"{total.deadline_missed:,} blocks", _mood((late or 0) > _MUCH)),
        _time_tile(flow.times),
    )


def outcome_points(flow: PrefetchFlow) -> tuple[OutcomePoint, ...]:
    """What became of the blocks of each bucket."""
    width = timedelta(milliseconds=flow.bucket_ms)
    return tuple(
        OutcomePoint(moment(row.wall_ns), moment(row.wall_ns) + width, outcome, blocks)
        for row in flow.series
        for outcome, blocks in outcomes(row.figures)
        if blocks
    )


def loss_lines(flow: PrefetchFlow, names: Names) -> tuple[LossLine, ...]:
    """Where blocks were in vain, most first."""
    return tuple(
        LossLine(
            outcome=loss.outcome,
            reason=(loss.reason or "no reason given").replace("_", " "),
            tier=loss.tier or "",
            tenant=name_of(names, loss.tenant),
            blocks=loss.blocks,
            bytes=loss.bytes,
            share=loss.blocks / flow.total.issued if flow.total.issued else 0.0,
        )
        for loss in flow.losses
    )


def _time_tile(times: PrefetchTimes) -> Tile:
    """Reading that nobody waited for, against reading for nothing and standing still for what came late."""
    caused, waited = duration(times.caused_ns / 1e6), duration(times.waited_ns / 1e6)
    detail = f"{caused} of reading for nothing; requests stood still for what came late: {waited}"
    return Tile("Time hidden", duration(times.hidden_ns / 1e6), detail, _mood(times.caused_ns > times.hidden_ns))


def _mood(bad: bool) -> Mood:
    """How a share is to be taken."""
    return Mood.FAIR if bad else Mood.PLAIN
