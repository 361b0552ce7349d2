"""The record itself for people: is it whole, is it fresh, and what is missing."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kvtrail_dashboards.answers import Loss, StreamLoss
from kvtrail_dashboards.compute.ages import age
from kvtrail_dashboards.compute.figures import duration
from kvtrail_dashboards.compute.now import Mood, Tile, coverage_tile
from kvtrail_dashboards.compute.wall import moment
from kvtrail_dashboards.page_answers import Recorder, RecorderStream

_FRESH_NS: Final = 5_000_000_000
_RUNNING: Final = 0
_STATES: Final = {0: "running", 1: "ended in order", 2: "killed"}
_MOST_GAPS: Final = 50


@dataclass(frozen=True, slots=True)
class StreamLine:
    """One stream: its books and its freshness."""

    stream: str
    state: str
    produced: int
    stored: int
    dropped: int
    in_flight: int
    unaccounted: int
    heard: str
    beat: str
    delay_ms: float


@dataclass(frozen=True, slots=True)
class DropLine:
    """Events that a stage dropped for a reason."""

    stream: str
    stage: str
    reason: str
    events: int


@dataclass(frozen=True, slots=True)
class GapLine:
    """Numbers that nobody explains."""

    stream: str
    first: int
    last: int
    events: int


@dataclass(frozen=True, slots=True)
class RatePoint:
    """The events a second of one stream in one bucket of time."""

    at: datetime
    stream: str
    events_per_s: float | None


def recorder_tiles(recorder: Recorder, loss: Loss, engine: str) -> tuple[Tile, ...]:
    """Is the record whole, and is it fresh."""
    streams = [stream for stream in loss.streams if stream.engine == engine]
    lost = sum(stream.unaccounted for stream in streams)
    rates = [row.events_per_s for row in recorder.series if row.events_per_s is not None]
    delays = [stream.delay_ns for stream in recorder.streams]
    return (
        Tile("Balance", "unbalanced" if lost else "balanced", _balance(streams), Mood.BAD if lost else Mood.GOOD),
        coverage_tile(loss, engine),
        Tile("Events a second", f"{rates[-1]:,.0f}" if rates else "not known", f"at most {max(rates):,.0f}" if rates else ""),
        Tile("On the way", duration(max(delays) / 1e6) if delays else "not known", "the newest batch, by both wall clocks"),
        _freshness(recorder),
    )


def stream_lines(recorder: Recorder, loss: Loss) -> tuple[StreamLine, ...]:
    """The streams of the page, the one last heard of first."""
    books = {(one.engine, one.epoch, one.rank): one for one in loss.streams}
    found = ((one, books.get((one.engine, one.epoch, one.rank))) for one in recorder.streams)
    return tuple(_stream(stream, book, recorder.now_wall_ns) for stream, book in found if book is not None)


def drop_lines(loss: Loss, engine: str) -> tuple[DropLine, ...]:
    """What was dropped, most first."""
    lines = [
        DropLine(_name(stream), drop.stage, drop.reason.replace("_", " "), drop.count)
        for stream in loss.streams
        if stream.engine == engine
        for drop in stream.dropped
    ]
    return tuple(sorted(lines, key=lambda line: -line.events))


def gap_lines(loss: Loss, engine: str) -> tuple[GapLine, ...]:
    """The largest holes that nobody explains."""
    lines = [
        GapLine(_name(stream), first, last, last - first + 1)
        for stream in loss.streams
        if stream.engine == engine
        for first, last in stream.gaps
    ]
    return tuple(sorted(lines, key=lambda line: -line.events)[:_MOST_GAPS])


def rate_points(recorder: Recorder) -> tuple[RatePoint, ...]:
    """Events a second over time, by rank."""
    return tuple(RatePoint(moment(row.wall_ns), f"rank {row.rank}", row.events_per_s) for row in recorder.series)


def _balance(streams: list[StreamLoss]) -> str:
    """The books in one line."""
    produced, stored = sum(one.produced for one in streams), sum(one.stored for one in streams)
    dropped = sum(drop.count for one in streams for drop in one.dropped)
    flying, lost = sum(one.in_flight for one in streams), sum(one.unaccounted for one in streams)
    return f"{produced:,} produced = {stored:,} stored + {dropped:,} dropped + {flying:,} on the way + {lost:,} unaccounted"


def _freshness(recorder: Recorder) -> Tile:
    """When a stream was last heard; a stream that runs and is silent is odd."""
    newest = max((stream.heard_wall_ns for stream in recorder.streams), default=None)
    silent = [one for one in recorder.streams if one.state == _RUNNING and recorder.now_wall_ns - one.heard_wall_ns > _FRESH_NS]
    told = f"{len(silent):,} streams run and are silent" if silent else "no stream that runs is silent"
    return Tile("Last heard", age(newest, recorder.now_wall_ns), told, Mood.BAD if silent else Mood.GOOD)


def _stream(stream: RecorderStream, book: StreamLoss, now_ns: int) -> StreamLine:
    """One stream as a line."""
    return StreamLine(
        stream=_name(book),
        state=_STATES.get(stream.state, str(stream.state)),
        produced=book.produced,
        stored=book.stored,
        dropped=sum(drop.count for drop in book.dropped),
        in_flight=book.in_flight,
        unaccounted=book.unaccounted,
        heard=age(stream.heard_wall_ns, now_ns),
        beat=age(stream.beat_wall_ns, now_ns),
        delay_ms=stream.delay_ns / 1e6,
    )


def _name(stream: StreamLoss) -> str:
    """A stream for people."""
    return f"{stream.engine} / {stream.epoch} / {stream.rank}"
