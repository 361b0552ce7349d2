"""How the recorder itself does: events a second, how many wait in the ring, and how late they arrive."""

from __future__ import annotations

from typing import Final

import duckdb
import msgspec
from kvtrail_schema.counters import RECORDER_COST
from kvtrail_schema.kinds import Kind

from kvtrail_collector.questions.buckets import bucket_ns
from kvtrail_collector.questions.scope import IN_STREAMS, Chosen

MOST_STREAMS: Final = 200
_BEATS: Final = f"""
FROM events WHERE kind = {Kind.AGENT_HEARTBEAT.value} AND produced IS NOT NULL
    AND {IN_STREAMS} AND t_ns >= $start_ns AND t_ns < $end_ns
"""  # constants of ours
_EXTENT: Final = f"SELECT min(t_ns), max(t_ns) {_BEATS}"  # constants of ours
# Between two heartbeats of a stream its count grew by so many; the growth belongs to the bucket of the later one.
_SERIES: Final = f"""
SELECT engine, rank, t_ns - t_ns % $bucket_ns AS start_ns, t_ns - t_ns % $bucket_ns + max(offset_ns),
    sum(grown) * 1e9 / nullif(sum(lasted_ns), 0), max(lasted_ns) / 1e6
FROM (
    SELECT stream_id, t_ns, produced - lag(produced) OVER beats AS grown, t_ns - lag(t_ns) OVER beats AS lasted_ns
    {_BEATS} WINDOW beats AS (PARTITION BY stream_id ORDER BY t_ns)
) JOIN streams USING (stream_id)
JOIN (SELECT stream_id, wall_ns - monotonic_ns AS offset_ns FROM stream_marks) USING (stream_id)
WHERE grown IS NOT NULL GROUP BY engine, rank, start_ns ORDER BY engine, rank, start_ns
"""  # noqa: S608  # constants of ours
# The counter only grows while a process lives: what it grew by, of the time in which it did. Of all time, so that a stretch
# without samples is told from a recorder that has none.
_STREAMS: Final = f"""
WITH costs AS (
    SELECT stream_id, (max("value") FILTER (is_asked) - min("value") FILTER (is_asked))
        / nullif(max(t_ns) FILTER (is_asked) - min(t_ns) FILTER (is_asked), 0) AS cost_share
    FROM (
        SELECT stream_id, t_ns, "value", t_ns >= $start_ns AND t_ns < $end_ns AS is_asked
        FROM events WHERE kind = {Kind.COUNTER_SAMPLED.value} AND "text" = '{RECORDER_COST}' AND {IN_STREAMS}
    ) GROUP BY stream_id
)
SELECT engine, epoch, rank, produced, state, heard_wall_ns, wall_ns, heard_wall_ns - wall_ns, error_ns,
    (SELECT max(t_ns) FROM events WHERE events.stream_id = stream_marks.stream_id AND kind = {Kind.AGENT_HEARTBEAT.value})
        + wall_ns - monotonic_ns, cost_share, costs.stream_id IS NOT NULL
FROM stream_marks JOIN streams USING (stream_id) LEFT JOIN costs USING (stream_id)
WHERE stream_id IN (SELECT unnest($all_streams::INTEGER[])) ORDER BY heard_wall_ns DESC, engine, rank LIMIT {MOST_STREAMS}
"""  # noqa: S608  # constants of ours


class RecorderBucket(msgspec.Struct, frozen=True):
    """The events a second that a stream produced in one bucket, and the longest time between two heartbeats in it."""

    engine: str
    rank: int
    start_ns: int
    wall_ns: int
    events_per_s: float | None
    longest_beat_ms: float | None


class RecorderStream(msgspec.Struct, frozen=True):
    """One stream: its state, when it was last heard, and how long its newest batch was on the way.

    `clock_error_ns` bounds what is not known of its clock; `beat_wall_ns` is the newest heartbeat of the recorder in the
    engine's process, None where there was none. `recorder_share` is what recording took of the engine's time in the scope,
    None without two samples there; `has_cost_samples` tells whether its recorder ever told it.
    """

    engine: str
    epoch: int
    rank: int
    produced: int
    state: int
    heard_wall_ns: int
    sent_wall_ns: int
    delay_ns: int
    clock_error_ns: int
    beat_wall_ns: int | None
    recorder_share: float | None = None
    has_cost_samples: bool = False


class Recorder(msgspec.Struct, frozen=True):
    """All streams now and over time; `now_wall_ns` is the collector's clock, from which ages are told.

    `streams_left_out` is how many more there are than are listed.
    """

    now_wall_ns: int
    bucket_ms: int
    streams: list[RecorderStream]
    series: list[RecorderBucket]
    device: str | None = None
    schema: int = 1
    streams_left_out: int = 0


def recorder(cursor: duckdb.DuckDBPyConnection, chosen: Chosen, points: int, now_wall_ns: int, device: str | None) -> Recorder:
    """The streams of a scope, the one last heard of first, at most `MOST_STREAMS`. Passes over few kinds alone."""
    values = {"streams": chosen.streams, "start_ns": chosen.start_ns, "end_ns": chosen.end_ns}
    extent = cursor.execute(_EXTENT, values).fetchone()
    width_ns = bucket_ns(extent, points)
    series = cursor.execute(_SERIES, {**values, "bucket_ns": width_ns}).fetchall()
    known = [*chosen.streams, *chosen.left_out]
    found = cursor.execute(_STREAMS, {**values, "all_streams": known}).fetchall()
    return Recorder(
        now_wall_ns=now_wall_ns,
        bucket_ms=width_ns // 1_000_000,
        streams=[RecorderStream(*row) for row in found],
        series=[RecorderBucket(*row) for row in series],
        device=device,
        streams_left_out=len(known) - len(found),
    )
