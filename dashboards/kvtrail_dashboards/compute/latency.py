"""TTFT over time: buckets wide enough to be read, with breaks where nothing arrived."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kvtrail_dashboards.answers import Series, SeriesRow, Window
from kvtrail_dashboards.compute.breaks import with_breaks
from kvtrail_dashboards.compute.wall import WallTime, wall_time

MAX_POINTS: Final = 150
COARSE_BUCKET_MS: Final = 60_000
OF_DAYS_FROM_MS: Final = 600_000
"""From this bucket on, `MAX_POINTS` of them are more than a day."""
_BUCKETS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400)
_NS_PER_S: Final = 1_000_000_000
_NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    """One bucket, at its middle. Percentiles are None where nothing arrived, so that lines break there."""

    at: datetime
    requests: int
    censored: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True)
class Band:
    """A stretch of time to be marked; `told` stands at its mark where its name does not say all."""

    name: str
    start: datetime
    end: datetime
    told: str = ""


@dataclass(frozen=True, slots=True)
class LatencyView:
    """What the chart of latency shows."""

    points: tuple[LatencyPoint, ...]
    bands: tuple[Band, ...]
    bucket_ms: int
    requests: int
    censored: int
    title: str = "time to first token, ms"

    @property
    def measured(self) -> bool:
        """Whether there is anything to draw."""
        return any(point.p50_ms is not None for point in self.points)


def bucket_ms_for(coarse: Series) -> int:
    """The narrowest bucket with which the whole stretch of a coarse series has at most `MAX_POINTS` points."""
    if not coarse.series:
        return _BUCKETS_S[0] * 1_000
    starts = [row.start_ns for row in coarse.series]
    span_s = (max(starts) - min(starts)) / _NS_PER_S + coarse.bucket_ms / 1_000
    fitting = (seconds for seconds in _BUCKETS_S if span_s / seconds <= MAX_POINTS)
    return next(fitting, _BUCKETS_S[-1]) * 1_000


def latency_view(series: Series, spike: Window | None, reference: Window | None) -> LatencyView:
    """The points and marks of one engine's series."""
    wall = wall_time(series)
    bands = [(name, window) for name, window in (("reference", reference), ("spike", spike)) if window is not None]
    return LatencyView(
        points=tuple(_points(series, wall)),
        bands=tuple(Band(name, wall.at(window.start_ns), wall.at(window.end_ns)) for name, window in bands),
        bucket_ms=series.bucket_ms,
        requests=sum(row.requests for row in series.series),
        censored=sum(row.censored for row in series.series),
    )


def _points(series: Series, wall: WallTime) -> Iterator[LatencyPoint]:
    """A point a bucket, and one empty point at the end of each break."""
    width_ns = series.bucket_ms * _NS_PER_MS
    for row, is_after_a_break in with_breaks(series.series, width_ns):
        if is_after_a_break:
            yield break_at(wall.at(row.start_ns - width_ns // 2))
        yield _point(row, wall, width_ns)


def break_at(at: datetime) -> LatencyPoint:
    """A point of nothing, at which lines break."""
    return LatencyPoint(at, 0, 0, None, None, None)


def _point(row: SeriesRow, wall: WallTime, width_ns: int) -> LatencyPoint:
    """One bucket as a point."""
    middle = wall.at(row.start_ns + width_ns // 2)
    return LatencyPoint(middle, row.requests, row.censored, row.p50_ms, row.p95_ms, row.p99_ms)
