"""How monotonic times become wall times, by the calibration that travels with each batch; and which streams share a clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

import duckdb

from kvtrail_collector.questions.rows import StreamRow

_OFFSETS: Final = """
SELECT wall_ns - monotonic_ns FROM stream_marks WHERE stream_id IN (SELECT unnest(?::INTEGER[])) AND wall_ns IS NOT NULL
ORDER BY heard_wall_ns DESC
"""
_HEARD: Final = """
SELECT stream_id, coalesce(wall_ns - monotonic_ns, 0), coalesce(heard_wall_ns, 0),
    count(req) FILTER (arrived_ns IS NOT NULL),
    count(req) FILTER (arrived_ns >= $start_ns AND arrived_ns < $end_ns)
FROM streams LEFT JOIN stream_marks USING (stream_id) LEFT JOIN requests USING (stream_id)
WHERE stream_id IN (SELECT unnest($streams::INTEGER[])) GROUP BY ALL
"""
_MARKS: Final = """
SELECT stream_id, wall_ns - monotonic_ns, wall_ns FROM stream_marks
WHERE stream_id IN (SELECT unnest(?::INTEGER[])) AND wall_ns IS NOT NULL
"""
_SAME_CLOCK_NS: Final = 1_000_000_000
APART_NS: Final = 60_000_000_000
"""Offsets of one clock drift by less, as wall clocks are set right; a host that starts anew begins its clock anew."""
FEW_REQUESTS: Final = 60
"""After a start a clock with fewer requests than this has nothing to explain yet."""


class OneClock(NamedTuple):
    """Streams whose times can be compared, and what to say of those that are left out."""

    streams: list[StreamRow]
    notes: tuple[str, ...]


class _Mark(NamedTuple):
    """The newest word of a stream: the moment at which its clock was 0, and when it spoke, both as times of day."""

    stream: StreamRow
    offset_ns: int
    wall_ns: int


class _Heard(NamedTuple):
    """What is known of one stream: its clock, and how many requests it has, in all and in the window."""

    stream: StreamRow
    offset_ns: int
    heard_ns: int
    requests: int
    in_window: int


_Told = TypeVar("_Told", _Mark, _Heard)


def clock_offset_ns(cursor: duckdb.DuckDBPyConnection, wanted: list[StreamRow]) -> int | None:
    """Wall time minus monotonic time of some streams, by the one last heard of; None for clocks of several hosts."""
    offsets = [int(row[0]) for row in cursor.execute(_OFFSETS, [[stream.stream_id for stream in wanted]]).fetchall()]
    if not offsets or max(offsets) - min(offsets) > _SAME_CLOCK_NS:
        return None
    return offsets[0]


def one_clock(
    cursor: duckdb.DuckDBPyConnection, wanted: Sequence[StreamRow], window: tuple[int, int] | None = None
) -> OneClock:
    """The streams of one engine and one clock, with most requests in a window; without one, those that run now.

    Requests of several engines, or of before and after the start of a host, lie side by side on the axis of monotonic time and
    have nothing to do with each other there: one steady engine beside another would look like a spike. Worker thread; one
    count of requests.
    """
    heard = _heard(cursor, wanted, window)
    engines = {one.stream.engine for one in heard if one.requests}
    if len(engines) > 1:
        busiest = max(sorted(engines), key=lambda name: _weight([one for one in heard if one.stream.engine == name]))
        heard = [one for one in heard if one.stream.engine == busiest]
        told = [f"engine {busiest} alone, the busiest of {len(engines)}: name another to have it explained"]
    else:
        told = []
    clocks = _clocks(heard)
    chosen = _chosen(clocks, has_window=window is not None) if clocks else []
    left = sum(one.requests for one in heard) - sum(one.requests for one in chosen)
    if left:
        told.append(f"{left:,} requests of another clock, of before its host started anew, are left out")
    return OneClock([one.stream for one in chosen], tuple(told))


def clocks_of(cursor: duckdb.DuckDBPyConnection, wanted: Sequence[StreamRow], start_ns: int | None) -> list[StreamRow]:
    """The streams, engine by engine, whose clocks run now, or ran when a stretch of time began that those do not reach.

    A host that starts anew begins its clock anew: what was before it lies on the same monotonic times as what is now. Clocks of
    several hosts that run beside each other stay. Cheap: the books alone.
    """
    ids = [stream.stream_id for stream in wanted]
    rows = {row[0]: row[1:] for row in cursor.execute(_MARKS, [ids]).fetchall()}
    told = [_Mark(stream, *rows[stream.stream_id]) for stream in wanted if stream.stream_id in rows]
    kept = {stream.stream_id for stream in wanted} - rows.keys()
    for engine in {one.stream.engine for one in told}:
        clocks = _clocks([one for one in told if one.stream.engine == engine])
        reach = [own for own in clocks if start_ns is None or any(one.wall_ns - one.offset_ns >= start_ns for one in own)]
        kept |= {one.stream.stream_id for own in _running(reach or clocks) for one in own}
    return [stream for stream in wanted if stream.stream_id in kept]


def _running(clocks: Sequence[list[_Mark]]) -> list[list[_Mark]]:
    """The clocks that spoke as lately as any, and after the newest of them began."""
    last = {place: max(one.wall_ns for one in own) for place, own in enumerate(clocks)}
    newest = max(last, key=last.__getitem__)
    since_ns = max(last[newest] - APART_NS, min(one.offset_ns for one in clocks[newest]))
    return [own for place, own in enumerate(clocks) if place == newest or last[place] > since_ns]


def _heard(cursor: duckdb.DuckDBPyConnection, wanted: Sequence[StreamRow], window: tuple[int, int] | None) -> list[_Heard]:
    """What is known of each stream, in the order given."""
    start_ns, end_ns = window or (None, None)
    asked = {"streams": [stream.stream_id for stream in wanted], "start_ns": start_ns, "end_ns": end_ns}
    rows = {row[0]: row[1:] for row in cursor.execute(_HEARD, asked).fetchall()}
    return [_Heard(stream, *rows[stream.stream_id]) for stream in wanted]


def _clocks(heard: Sequence[_Told]) -> list[list[_Told]]:
    """Streams by their clocks."""
    clocks: list[list[_Told]] = []
    for one in sorted(heard, key=lambda each: each.offset_ns):
        if clocks and one.offset_ns - clocks[-1][-1].offset_ns <= APART_NS:
            clocks[-1].append(one)
        else:
            clocks.append([one])
    return clocks


def _chosen(clocks: Sequence[list[_Heard]], *, has_window: bool) -> list[_Heard]:
    """The clock that a question means: that of the window's requests, else the newest that has enough of them."""
    if has_window:
        return max(clocks, key=lambda own: (_weight(own), max(one.heard_ns for one in own)))
    enough = [own for own in clocks if sum(one.requests for one in own) >= FEW_REQUESTS]
    if not enough:
        return max(clocks, key=_weight)
    return max(enough, key=lambda own: max(one.heard_ns for one in own))


def _weight(heard: Sequence[_Heard]) -> tuple[int, int]:
    """How many requests some streams have in the window, and in all."""
    return sum(one.in_window for one in heard), sum(one.requests for one in heard)
