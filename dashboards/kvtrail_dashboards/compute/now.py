"""How it is now: a tile for each figure that an operator watches, latency over time, and what is wrong."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final

from kvtrail_dashboards.answers import Attribution, Loss, Verdict, Window
from kvtrail_dashboards.compute.books import books_of, of_engine
from kvtrail_dashboards.compute.breaks import with_breaks
from kvtrail_dashboards.compute.events import name_of_event
from kvtrail_dashboards.compute.figures import duration, percent
from kvtrail_dashboards.compute.latency import Band, LatencyPoint, LatencyView, break_at
from kvtrail_dashboards.compute.verdict_words import words_of
from kvtrail_dashboards.compute.wall import moment
from kvtrail_dashboards.page_answers import EngineRow, Latency, LatencyBucket, Percentiles, Pressure

DEFAULT_TTFT_MS: Final = 500
DEFAULT_TPOT_MS: Final = 100
MAX_VERDICTS: Final = 5
_NS_PER_MS: Final = 1_000_000
POPULATION: Final = "population"
_FIGURES: Final = 4
_GOOD: Final = 0.99
_FAIR: Final = 0.95


class Mood(Enum):
    """How a figure is to be taken; shown by a word and a sign as well as by colour."""

    GOOD = "good"
    FAIR = "fair"
    BAD = "bad"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure, what it is, and what stands beside it."""

    label: str
    value: str
    detail: str
    mood: Mood = Mood.PLAIN


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """One verdict in a line, what helps, and where to look closer: the spike's window, or an event that shows it.

    `figures` are those of a mechanism; a spike has its own page for them.
    """

    code: str
    where: str
    headline: str
    sure: str
    window: tuple[int, int] | None
    event: str | None
    action: str = ""
    figures: str = ""


def tiles(latency: Latency, loss: Loss, engine: str, ttft_ms: int, tpot_ms: int) -> tuple[Tile, ...]:
    """The figures of one engine and stretch of time."""
    total = latency.total
    span_s = len(latency.series) * latency.bucket_ms / 1_000
    rate = f"{total.requests / span_s:,.1f} a second" if span_s else "none"
    without = f"{total.censored:,} without a first token" if total.censored else "all have a first token"
    return (
        _percentile_tile("TTFT, P99", total.ttft),
        _percentile_tile("TPOT, P99", total.tpot),
        Tile("Within objective", percent(total.within), f"TTFT {ttft_ms:,} ms, TPOT {tpot_ms:,} ms", _mood(total.within)),
        Tile("Requests", f"{total.requests:,}", f"{rate}; {without}", Mood.FAIR if total.censored else Mood.PLAIN),
        coverage_tile(loss, engine),
    )


def coverage_tile(loss: Loss, engine: str) -> Tile:
    """How much of what an engine's streams produced is stored; what retention let go of is no part of it."""
    books = books_of(of_engine(loss, engine))
    share = percent(books.kept_share)
    expired = f"; {books.expired:,} older ones expired" if books.expired else ""
    if books.unaccounted:
        return Tile("Events stored", share, f"{books.unaccounted:,} unaccounted for{expired}", Mood.BAD)
    if not books.produced:
        return Tile("Events stored", share, "nothing was produced")
    told = f"{books.dropped:,} dropped, accounted for" if books.dropped else "nothing lost"
    return Tile("Events stored", share, f"{told}{expired}", Mood.FAIR if books.dropped else Mood.GOOD)


def latency_views(latency: Latency, engine: EngineRow, spike: Window | None) -> tuple[LatencyView, LatencyView]:
    """TTFT and TPOT over time; the spike is marked where it lies within the stretch that is shown."""
    bands = _bands(latency, engine, spike)
    return (
        _view(latency, lambda row: row.figures.ttft, bands, "time to first token, ms"),
        _view(latency, lambda row: row.figures.tpot, bands, "time per output token, ms"),
    )


def verdict_lines(verdicts: tuple[Verdict, ...]) -> tuple[VerdictLine, ...]:
    """The gravest verdicts, in the collector's order; those of one code at one place are one line."""
    alike: dict[tuple[str, str | None, str | None], list[Verdict]] = {}
    for verdict in verdicts:
        alike.setdefault((verdict.code, verdict.tier, verdict.tenant), []).append(verdict)
    return tuple(_verdict_line(several[0], len(several)) for several in list(alike.values())[:MAX_VERDICTS])


def unnamed_line(attribution: Attribution) -> VerdictLine:
    """A spike of which no verdict names the cause."""
    window = attribution.window
    why = attribution.why_not or "no verdict names its cause"
    held = None if window is None else (window.start_ns, window.end_ns)
    return VerdictLine("SPIKE", "", "Requests were slower for a while.", f"{why[:1].upper()}{why[1:]}.", held, None)


def pressure_lines(pressure: Pressure) -> tuple[str, ...]:
    """What holds the engine back, in sentences."""
    actions = [f"Degrade action {one.action}: {one.state} since {_clock(one.since_wall_ns)}." for one in pressure.degrade]
    held = [
        f"{one.tier} pushes back ({(one.reason or 'no reason given').replace('_', ' ')}) since {_clock(one.since_wall_ns)}."
        for one in pressure.backpressure
    ]
    return (*actions, *held)


def _clock(wall_ns: int) -> str:
    """A wall time for people."""
    return f"{moment(wall_ns):%H:%M:%S} UTC"


def _percentile_tile(label: str, values: Percentiles) -> Tile:
    """P99 in large, the others beside it."""
    if values.p99_ms is None or values.p95_ms is None or values.p50_ms is None:
        return Tile(label, "not known", "nothing measured")
    return Tile(label, duration(values.p99_ms), f"P95 {duration(values.p95_ms)}, P50 {duration(values.p50_ms)}")


def _mood(within: float | None) -> Mood:
    """How good a share is."""
    if within is None:
        return Mood.PLAIN
    return Mood.GOOD if within >= _GOOD else Mood.FAIR if within >= _FAIR else Mood.BAD


def _view(
    latency: Latency, measure: Callable[[LatencyBucket], Percentiles], bands: tuple[Band, ...], title: str
) -> LatencyView:
    """One measure over time."""
    points = tuple(_points(latency, measure))
    return LatencyView(points, bands, latency.bucket_ms, latency.total.requests, latency.total.censored, title)


def _points(latency: Latency, measure: Callable[[LatencyBucket], Percentiles]) -> Iterator[LatencyPoint]:
    """A point a bucket, at its middle, and an empty one where a break ends."""
    half = timedelta(milliseconds=latency.bucket_ms) / 2
    for row, is_after_a_break in with_breaks(latency.series, latency.bucket_ms * _NS_PER_MS):
        if is_after_a_break:
            yield break_at(moment(row.wall_ns) - half)
        values = measure(row)
        at = moment(row.wall_ns) + half
        yield LatencyPoint(at, row.figures.requests, row.figures.censored, values.p50_ms, values.p95_ms, values.p99_ms)


def _bands(latency: Latency, engine: EngineRow, spike: Window | None) -> tuple[Band, ...]:
    """The spike as a mark, cut to the stretch that is shown."""
    if spike is None or not latency.series:
        return ()
    first = latency.series[0].start_ns
    last = latency.series[-1].start_ns + latency.bucket_ms * _NS_PER_MS
    start, end = max(spike.start_ns, first), min(spike.end_ns, last)
    if start >= end:
        return ()
    return (Band("spike", moment(start + engine.wall_offset_ns), moment(end + engine.wall_offset_ns)),)


def _verdict_line(verdict: Verdict, times: int) -> VerdictLine:
    """A verdict in a line, and how often it was found."""
    words = words_of(verdict)
    window = verdict.window
    of_a_spike = verdict.basis == POPULATION
    sure = f"{words.share} of the excess, certainty {words.certainty}." if of_a_spike else f"Certainty {words.certainty}."
    often = f" Found {times:,} times; this is the gravest." if times > 1 else ""
    figures = "" if of_a_spike else ", ".join(f"{name} {value}" for name, value in words.evidence[:_FIGURES])
    held = (window.start_ns, window.end_ns) if window is not None and of_a_spike else None
    event = name_of_event(verdict.events[0]) if verdict.events and not of_a_spike else None
    return VerdictLine(words.code, words.where, words.headline, f"{sure}{often}", held, event, words.action, figures)
