"""Events a second: of all ranks together now and at most, and of each over time with a break where it was silent."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Final

from kvtrail_dashboards.compute.breaks import with_breaks
from kvtrail_dashboards.compute.figures import duration
from kvtrail_dashboards.compute.now import Mood, Tile
from kvtrail_dashboards.compute.wall import moment
from kvtrail_dashboards.page_answers import Recorder, RecorderBucket

_NS_PER_MS: Final = 1_000_000
_SLOWEST_BEAT_MS: Final = 5_000
"""A recorder that beats less often than this was held up, or is told to."""
_JITTER_BUCKETS: Final = 2
"""A beat that comes a little late leaves its bucket empty, and is no break."""
_JITTER_BEATS: Final = 3
"""Nor is a beat that comes late by its own measure, where beats are rarer than buckets."""


@dataclass(frozen=True, slots=True)
class RatePoint:
    """The events a second of one stream in one bucket of time; None where its line breaks."""

    at: datetime
    stream: str
    events_per_s: float | None


def rate_points(recorder: Recorder) -> tuple[RatePoint, ...]:
    """Events a second over time, by rank; nothing is drawn across a time in which a rank was not heard of."""
    return tuple(point for rows in _by_rank(recorder).values() for point in _points(rows, recorder.bucket_ms))


def rate_tile(recorder: Recorder) -> Tile:
    """What all ranks produce together in the newest bucket, the most of any, and the longest time between two beats."""
    sums = _sums(recorder)
    if not sums:
        return Tile("Events a second", "not known", "no heartbeat in this stretch of time")
    longest_ms = max((row.longest_beat_ms or 0.0 for row in recorder.series), default=0.0)
    ranks = len(_by_rank(recorder))
    whose = f"of {ranks} ranks together; " if ranks > 1 else ""
    told = f"{whose}at most {max(sums):,.0f}; longest time between two heartbeats {duration(longest_ms)}"
    return Tile("Events a second", f"{sums[-1]:,.0f}", told, Mood.FAIR if longest_ms > _SLOWEST_BEAT_MS else Mood.PLAIN)


def _sums(recorder: Recorder) -> list[float]:
    """The rate of all ranks together, bucket by bucket of wall time, as clocks of hosts differ. The newest is whole.

    The newest bucket of one rank may begin before that of another: each rank counts with its own newest one.
    """
    width_ns = recorder.bucket_ms * _NS_PER_MS
    buckets: dict[int, dict[int, float]] = {}
    for row in recorder.series:
        if row.events_per_s is not None:
            buckets.setdefault(row.wall_ns // width_ns, {})[row.rank] = row.events_per_s
    sums = [sum(buckets[place].values()) for place in sorted(buckets)]
    return [*sums, sum(_newest(recorder, width_ns))] if sums else []


def _newest(recorder: Recorder, width_ns: int) -> Iterator[float]:
    """The newest rate of each rank that was heard of lately."""
    last_ns = max(row.wall_ns for row in recorder.series)
    for rows in _by_rank(recorder).values():
        row = max(rows, key=lambda one: one.wall_ns)
        if row.events_per_s is not None and last_ns - row.wall_ns <= _JITTER_BUCKETS * width_ns:
            yield row.events_per_s


def _by_rank(recorder: Recorder) -> dict[int, list[RecorderBucket]]:
    """The buckets of each rank."""
    ranks: dict[int, list[RecorderBucket]] = {}
    for row in recorder.series:
        ranks.setdefault(row.rank, []).append(row)
    return ranks


def _points(rows: list[RecorderBucket], bucket_ms: int) -> Iterator[RatePoint]:
    """One rank over time; an empty point where it is heard of again."""
    usual_ms = median(row.longest_beat_ms or 0.0 for row in rows)
    patience_ms = max(_JITTER_BUCKETS * bucket_ms, int(_JITTER_BEATS * usual_ms))
    for row, is_after_a_break in with_breaks(rows, patience_ms * _NS_PER_MS):
        stream = f"rank {row.rank}"
        if is_after_a_break:
            yield RatePoint(moment(row.wall_ns - bucket_ms * _NS_PER_MS // 2), stream, None)
        yield RatePoint(moment(row.wall_ns), stream, row.events_per_s)
