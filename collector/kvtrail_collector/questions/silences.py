"""Where events of a stream are missing, its ends included, and when its process ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import duckdb
from kvtrail_schema.batch import StreamState
from kvtrail_schema.identity import Stream
from kvtrail_schema.kinds import Kind
from kvtrail_schema.reasons import AgentReason

from kvtrail_collector.block_life import FOREVER_NS
from kvtrail_collector.facts_rows import Interval
from kvtrail_collector.ledger_rows import holes_of, identity_of
from kvtrail_collector.questions.rows import StreamRow

_BEFORE_ALL_NS: Final = -(2**63)
_DRILLS: Final = f"{Kind.FAULT_INJECTED.value}, {Kind.FAULT_CLEARED.value}"
_SPANS: Final = f"""
SELECT stream_id, state, monotonic_ns, greatest(produced, declared), low, high, first_ns, last_ns, farewell_ns FROM stream_marks
LEFT JOIN (SELECT stream_id, min(first_seq) AS low, max(last_seq) AS high FROM seq_ranges GROUP BY stream_id) USING (stream_id)
LEFT JOIN (SELECT stream_id, max(last_seq) AS declared FROM drop_ranges GROUP BY stream_id) USING (stream_id)
LEFT JOIN (SELECT stream_id,
    min_by(t_ns, seq) FILTER (kind NOT IN ({_DRILLS})) AS first_ns,
    max_by(t_ns, seq) FILTER (kind NOT IN ({_DRILLS})) AS last_ns,
    min(t_ns) FILTER (kind = {Kind.AGENT_STOPPED.value} AND reason = {AgentReason.RECORDER.value}) AS farewell_ns
    FROM events WHERE stream_id IN (SELECT unnest($streams::INTEGER[])) GROUP BY stream_id
) USING (stream_id) WHERE stream_id IN (SELECT unnest($streams::INTEGER[]))
"""  # noqa: S608  # constants of ours


class Silence(NamedTuple):
    """A stretch of which events of a stream are missing, and whether they may only be on their way, or were never to come."""

    stream: Stream
    span: Interval
    is_open: bool


class Ending(NamedTuple):
    """The end of the process of a stream, as late as it can have been."""

    stream: StreamRow
    t_ns: int


class _Span(NamedTuple):
    """What is stored of a stream, from where to where, and what was last heard of it; seqs are None where nothing is."""

    stream: StreamRow
    state: int
    monotonic_ns: int
    produced: int
    low: int | None
    high: int | None
    first_ns: int | None
    last_ns: int | None
    farewell_ns: int | None


class Silences(NamedTuple):
    """Of some streams: what is missing, and which processes ended."""

    holes: tuple[Silence, ...]
    endings: tuple[Ending, ...]


def silences_of(cursor: duckdb.DuckDBPyConnection, wanted: Sequence[StreamRow]) -> Silences:
    """What is missing of some streams, and which processes ended. Worker thread: one pass over four columns of their events.

    What is missing before the first stored event of a process began where the process before it was last heard, and what is
    missing behind the last one ends where the next process is first heard: without one, it never does.
    """
    asked = {"streams": [stream.stream_id for stream in wanted]}
    told = {row[0]: row[1:] for row in cursor.execute(_SPANS, asked).fetchall()}
    spans = [_Span(stream, *told[stream.stream_id]) for stream in wanted if stream.stream_id in told]
    spans.sort(key=lambda span: (span.stream.engine, span.stream.rank, span.stream.stream_id))
    holes, endings = list[Silence](), list[Ending]()
    for _, own in groupby(spans, key=lambda span: (span.stream.engine, span.stream.rank)):
        line = list(own)
        for before, span, after in zip([None, *line[:-1]], line, [*line[1:], None], strict=True):
            inside = [
                Silence(identity_of(span.stream), hole, is_open=False) for hole in holes_of(cursor, span.stream.stream_id)
            ]
            holes += [*_head(before, span), *inside, *_tail(before, span, after)]
            endings += _ending(span, after)
    return Silences(tuple(holes), tuple(endings))


def _head(before: _Span | None, span: _Span) -> Iterator[Silence]:
    """What is missing before the first stored event."""
    if span.low is not None and span.low > 1 and span.first_ns is not None:
        yield Silence(identity_of(span.stream), (min(_last_ns(before), span.first_ns), span.first_ns), is_open=False)


def _tail(before: _Span | None, span: _Span, after: _Span | None) -> Iterator[Silence]:
    """What is missing behind the last stored event, and what nobody tells of a process that may live on."""
    start_ns = _last_ns(before) if span.last_ns is None else span.last_ns
    next_ns = FOREVER_NS if after is None or after.first_ns is None else max(after.first_ns, start_ns)
    is_running = after is None and span.state == StreamState.RUNNING
    if span.produced > (span.high or 0):
        yield Silence(identity_of(span.stream), (start_ns, next_ns), is_open=is_running)
    elif after is None and not is_running and span.farewell_ns is None:
        yield Silence(identity_of(span.stream), (start_ns, FOREVER_NS), is_open=True)


def _last_ns(span: _Span | None) -> int:
    """When a process was last heard of in an event."""
    return _BEFORE_ALL_NS if span is None or span.last_ns is None else span.last_ns


def _ending(span: _Span, after: _Span | None) -> Iterator[Ending]:
    """When a process ended, if it is known to have.

    A stream that stopped without a farewell is an import, or has lost it: its source ended, the process may not have.
    """
    if span.farewell_ns is not None:
        yield Ending(span.stream, span.farewell_ns)
    elif after is not None or span.state == StreamState.KILLED:
        yield Ending(span.stream, max(span.monotonic_ns, _last_ns(span)))
