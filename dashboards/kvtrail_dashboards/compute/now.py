"""How it is now: a tile for each figure that an operator watches, latency over time, and what is wrong."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final

from kvtrail_dashboards.answers import Loss, Window
from kvtrail_dashboards.asked import Asked
from kvtrail_dashboards.compute.books import Books, books_of, of_engine
from kvtrail_dashboards.compute.breaks import with_breaks
from kvtrail_dashboards.compute.figures import duration, percent
from kvtrail_dashboards.compute.latency import Band, LatencyPoint, LatencyView, break_at
from kvtrail_dashboards.compute.wall import moment
from kvtrail_dashboards.page_answers import EngineRow, Latency, LatencyBucket, Percentiles, Pressure

DEFAULT_TTFT_MS: Final = 500
DEFAULT_TPOT_MS: Final = 100
_NS_PER_MS: Final = 1_000_000
_TENTH: Final = 0.1
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
class Objective:
    """What counts as good."""

    ttft_ms: int = DEFAULT_TTFT_MS
    tpot_ms: int = DEFAULT_TPOT_MS


def tiles(latency: Latency, loss: Loss, engine: EngineRow, asked: Asked, objective: Objective) -> tuple[Tile, ...]:
    """The figures of one engine and stretch of time."""
    total = latency.total
    span_s = stretch_s(latency, engine, asked)
    rate = f"{per_second(total.requests / span_s)} a second" if span_s else "none"
    wanted = f"TTFT {objective.ttft_ms:,} ms, TPOT {objective.tpot_ms:,} ms"
    without = f"{total.censored:,} without a first token" if total.censored else "all have a first token"
    return (
        _percentile_tile("TTFT, P99", total.ttft),
        _percentile_tile("TPOT, P99", total.tpot),
        Tile("Within objective", percent(total.within), wanted, _mood(total.within)),
        Tile("Requests", f"{total.requests:,}", f"{rate}; {without}", Mood.FAIR if total.censored else Mood.PLAIN),
        coverage_tile(loss, engine.engine),
    )


def stretch_s(latency: Latency, engine: EngineRow, asked: Asked) -> float:
    """How long what is asked about lasted, in seconds: from its start, or the first request, to its end, or what is known."""
    if not latency.series:
        return 0.0
    bucket_ns = latency.bucket_ms * _NS_PER_MS
    starts = [start for start in (asked.start_ns, engine.first_ns) if start is not None]
    ends = [end for end in (asked.end_ns, engine.last_ns) if end is not None]
    first_ns = max(starts, default=latency.series[0].start_ns)
    last_ns = min(ends, default=latency.series[-1].start_ns + bucket_ns)
    return max(last_ns - first_ns, bucket_ns) / 1e9


def per_second(rate: float) -> str:
    """A rate; one below a tenth keeps the digits that say that it is not nothing."""
    return f"{rate:,.1f}" if rate >= _TENTH or not rate else f"{rate:.2g}"


def coverage_tile(loss: Loss, engine: str) -> Tile:
    """How much of what an engine's streams produced is stored; what retention let go of is no part of it."""
    books = books_of(of_engine(loss, engine))
    share = percent(books.kept_share)
    expired = f"; {books.expired:,} older ones expired" if books.expired else ""
    if books.unaccounted:
        return Tile("Events stored", share, f"{books.unaccounted:,} unaccounted for{expired}", Mood.BAD)
    if books.kept_share is None:
        return Tile("Events stored", share, _none_to_store(books))
    told = f"{books.dropped:,} dropped, accounted for" if books.dropped else "nothing lost"
    return Tile("Events stored", share, f"{told}{expired}", Mood.FAIR if books.dropped else Mood.GOOD)


def _none_to_store(books: Books) -> str:
    """Why there is nothing of which a share could be stored."""
    if not books.produced:
        return "nothing was produced"
    expired = f"all {books.expired:,} that were stored expired" if books.expired else ""
    on_the_way = f"{books.in_flight:,} are on the way" if books.in_flight else ""
    return "; ".join(part for part in (expired, on_the_way) if part)


def latency_views(latency: Latency, engine: EngineRow, spike: Window | None) -> tuple[LatencyView, LatencyView]:
    """TTFT and TPOT over time; the spike is marked where it lies within the stretch that is shown."""
    bands = _bands(latency, engine, spike)
    return (
        _view(latency, lambda row: row.figures.ttft, bands, "time to first token, ms"),
        _view(latency, lambda row: row.figures.tpot, bands, "time per output token, ms"),
    )


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
    return f"{moment(wall_ns):%m-%d %H:%M:%S} UTC"


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
    """The spike as a mark, cut to the stretch that is shown; one that began before says when."""
    if spike is None or not latency.series:
        return ()
    first = latency.series[0].start_ns
    last = latency.series[-1].start_ns + latency.bucket_ms * _NS_PER_MS
    start, end = max(spike.start_ns, first), min(spike.end_ns, last)
    if start >= end:
        return ()
    began, ended = (moment(at + engine.wall_offset_ns) for at in (start, end))
    since = moment(spike.start_ns + engine.wall_offset_ns)
    told = "" if start == spike.start_ns else f"spike, since {since:%m-%d %H:%M:%S}"
    return (Band("spike", began, ended, told),)
