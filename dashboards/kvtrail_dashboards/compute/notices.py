"""What a reader must know before believing a page: what is missing, and what to do about it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kvtrail_dashboards.answers import Attribution, Loss, Series
from kvtrail_dashboards.compute.books import books_of, is_expiry, of_engine
from kvtrail_dashboards.compute.figures import percent

WHOLE: Final = 0.9995
_NAMED: Final = 10
_NO_SPIKE: Final = "No spike"


class Level(Enum):
    """How much a notice weighs."""

    GOOD = "good"
    NOTE = "note"
    WARNING = "warning"
    ALARM = "alarm"


@dataclass(frozen=True, slots=True)
class Notice:
    """One sentence on what is, and one on what to do."""

    level: Level
    what: str
    do: str


def nothing_yet(loss: Loss, series: Series | None) -> Notice | None:
    """Said instead of a page when there is nothing to show."""
    if not loss.streams:
        return no_engines([])
    if series is not None and not series.series:
        do = "Send a request through the engine, and check with `kvtrail loss` that its agent delivers; then refresh."
        return Notice(Level.NOTE, "Events have come in, but no request has arrived yet.", do)
    return None


def no_engines(engines: Sequence[str]) -> Notice | None:
    """Said instead of a page when nothing has come in."""
    if engines:
        return None
    do = "Start an engine with the agent attached to this collector, or try `kvtrail demo`; then refresh."
    return Notice(Level.NOTE, "No events have reached this collector yet.", do)


def nothing_in_range(what: str, *, arrived: bool) -> Notice | None:
    """Said instead of a chart when nothing of a kind is in the stretch of time."""
    if arrived:
        return None
    return Notice(Level.NOTE, f"{what} in this stretch of time.", "Choose a longer one above; what is asked for stands there.")


def unknown_engine(engine: str | None, engines: Sequence[str]) -> Notice | None:
    """Said instead of a page when a link names an engine that this collector has not heard of."""
    if engine is None or engine in engines or not engines:
        return None
    known = ", ".join(engines[:_NAMED])
    return Notice(Level.WARNING, f"This collector knows no engine {engine}.", f"Open the page without it; known are: {known}.")


def notices(loss: Loss, engine: str | None, attribution: Attribution) -> tuple[Notice, ...]:
    """What stands above the explanation, the gravest first."""
    return (*notices_of_losses(loss, engine), *_coverage(attribution))


def notices_of_losses(loss: Loss, engine: str | None) -> Iterator[Notice]:
    """Events that nobody accounts for, and events that somebody dropped."""
    streams = of_engine(loss, engine)
    books = books_of(streams)
    if books.unaccounted:
        do = "Causes may be missing below. Run `kvtrail loss` to see which stream and which numbers."
        yield Notice(Level.ALARM, f"{books.unaccounted:,} events were produced and are unaccounted for.", do)
    if books.dropped:
        drops = (drop for stream in streams for drop in stream.dropped if not is_expiry(drop))
        stages = ", ".join(sorted({f"{drop.stage} {drop.reason}" for drop in drops}))
        do = "They are accounted for; where they would tell the cause, time below stands as unattributed."
        yield Notice(Level.WARNING, f"{books.dropped:,} events were dropped on the way ({stages}).", do)


def no_spike(attribution: Attribution, slow_stretches: int = 0) -> Notice | None:
    """Said in place of a verdict when no window was found: that of several, none stands out, is not that all is well."""
    if attribution.window is not None:
        return None
    if slow_stretches:
        several = "A stretch of time was" if slow_stretches == 1 else f"{slow_stretches} stretches of time were"
        what = f"{several} slow, though none stands out from all the rest."
        return Notice(
            Level.WARNING, what, "Choose one of them in the list above or on the chart: it is compared with the time around it."
        )
    what = _sentence(attribution.why_not or "no spike: the slow requests are no slower than before")
    level = Level.GOOD if what.startswith(_NO_SPIKE) else Level.NOTE
    return Notice(
        level, what, "To look closer anyway, choose a stretch of time below the chart, or one of the slowest requests."
    )


def not_identified(attribution: Attribution) -> Notice | None:
    """Said in place of a verdict when there is a window and its cause is not known."""
    if attribution.window is None or attribution.verdicts:
        return None
    if attribution.identified:
        do = "See below which component grew; the slowest request shows it at work."
        return Notice(Level.NOTE, "The largest excess is identified, but no verdict names its cause.", do)
    what = _sentence(attribution.why_not or "the cause is not identifiable")
    do = "Look at the slowest requests below, or choose a longer stretch of time: more requests make intervals narrower."
    return Notice(Level.WARNING, what, do)


def _coverage(attribution: Attribution) -> Iterator[Notice]:
    """Windows of which a part is not covered by events."""
    for name, window in (("window", attribution.window), ("reference", attribution.reference)):
        if window is not None and window.coverage is not None and window.coverage < WHOLE:
            what = f"Events cover only {percent(window.coverage)} of the time of the {name}."
            yield Notice(Level.WARNING, what, "The rest is unattributed. Run `kvtrail loss` to see what is missing.")


def _sentence(text: str) -> str:
    """A phrase as a sentence."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
