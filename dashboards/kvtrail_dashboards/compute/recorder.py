"""The record itself for people: is it whole, is it fresh, and what is missing."""

from dataclasses import dataclass
from typing import Final

from kvtrail_dashboards.answers import Loss, StreamLoss
from kvtrail_dashboards.compute.ages import age
from kvtrail_dashboards.compute.books import Books, books_of, is_expiry, of_engine
from kvtrail_dashboards.compute.figures import duration, percent
from kvtrail_dashboards.compute.now import Mood, Tile, coverage_tile
from kvtrail_dashboards.compute.rates import rate_tile
from kvtrail_dashboards.compute.streams import RUNNING, newest_of_ranks, silent_streams, silent_told
from kvtrail_dashboards.page_answers import Recorder, RecorderStream

_STATES: Final = {0: "running", 1: "ended in order", 2: "killed"}
_MOST_GAPS: Final = 50
_RING: Final = "ring"
_DEAR: Final = 0.01
"""The share of the engine's time that `OBSERVER_COST` finds too much."""


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


def recorder_tiles(recorder: Recorder, loss: Loss, engine: str) -> tuple[Tile, ...]:
    """Is the record whole, and is it fresh."""
    books = books_of(of_engine(loss, engine))
    delays = [stream.delay_ns for stream in recorder.streams]
    return (
        _balance_tile(books),
        coverage_tile(loss, engine),
        rate_tile(recorder),
        Tile("On the way", duration(max(delays) / 1e6) if delays else "not known", "the newest batch, by both wall clocks"),
        _freshness(recorder),
        overhead_tile(recorder, loss, engine),
    )


def overhead_tile(recorder: Recorder, loss: Loss, engine: str) -> Tile:
    """What recording took of the engine's time, the most of any rank, and what a full ring dropped in all time."""
    shares = _shares(recorder)
    drops = (drop for stream in of_engine(loss, engine) for drop in stream.dropped)
    dropped = sum(drop.count for drop in drops if drop.stage == _RING)
    ring = f"in all time {f'{dropped:,} events' if dropped else 'no event'} met a full ring"
    if not shares:
        return Tile("Recording takes", "not known", f"{_no_share(recorder)}; {ring}", Mood.FAIR if dropped else Mood.PLAIN)
    mood = Mood.FAIR if dropped or max(shares) > _DEAR else Mood.GOOD
    return Tile("Recording takes", percent(max(shares)), f"of the engine's time; {ring}", mood)


def _shares(recorder: Recorder) -> tuple[float, ...]:
    """Of each rank, what its newest process took of those that told it in this stretch of time: a later one knows nothing."""
    newest: dict[tuple[str, int], float] = {}
    for stream in sorted(recorder.streams, key=lambda one: one.heard_wall_ns):
        if stream.recorder_share is not None:
            newest[stream.engine, stream.rank] = stream.recorder_share
    return tuple(newest.values())


def _no_share(recorder: Recorder) -> str:
    """Why nobody told what recording takes: at another time somebody did, or nobody ever."""
    if any(stream.has_cost_samples for stream in recorder.streams):
        return "no two samples in this stretch of time"
    return "the recorder does not tell what it takes"


def stream_lines(recorder: Recorder, loss: Loss) -> tuple[StreamLine, ...]:
    """The streams of the page, the one last heard of first."""
    books = {(one.engine, one.epoch, one.rank): one for one in loss.streams}
    found = ((one, books.get((one.engine, one.epoch, one.rank))) for one in recorder.streams)
    newest = set(newest_of_ranks(recorder))
    return tuple(
        _stream(stream, book, _state(stream, is_newest=stream in newest), recorder.now_wall_ns)
        for stream, book in found
        if book is not None
    )


def drop_lines(loss: Loss, engine: str) -> tuple[DropLine, ...]:
    """What was dropped, most first; what retention let go of was stored before, and is none of it."""
    lines = [
        DropLine(_name(stream), drop.stage, drop.reason.replace("_", " "), drop.count)
        for stream in loss.streams
        if stream.engine == engine
        for drop in stream.dropped
        if not is_expiry(drop)
    ]
    return tuple(sorted(lines, key=lambda line: -line.events))


def expired_told(loss: Loss, engine: str) -> str:
    """What retention let go of, in a sentence; empty where it did not."""
    expired = books_of(of_engine(loss, engine)).expired
    return f"{expired:,} events were stored once, and expired: retention let go of them." if expired else ""


def gap_lines(loss: Loss, engine: str) -> tuple[GapLine, ...]:
    """The largest holes that nobody explains."""
    lines = [
        GapLine(_name(stream), first, last, last - first + 1)
        for stream in loss.streams
        if stream.engine == engine
        for first, last in stream.gaps
    ]
    return tuple(sorted(lines, key=lambda line: -line.events)[:_MOST_GAPS])


def _balance_tile(books: Books) -> Tile:
    """Whether all that was produced is accounted for; of nothing that is no news."""
    if books.unaccounted:
        return Tile("Balance", "unbalanced", _balance(books), Mood.BAD)
    if not books.produced:
        return Tile("Balance", "not known", "nothing was produced")
    return Tile("Balance", "balanced", _balance(books), Mood.GOOD)


def _balance(books: Books) -> str:
    """The books in one line."""
    expired = f" + {books.expired:,} expired" if books.expired else ""
    return (
        f"{books.produced:,} produced = {books.stored:,} stored + {books.dropped:,} dropped{expired} + "
        f"{books.in_flight:,} on the way + {books.unaccounted:,} unaccounted"
    )


def _state(stream: RecorderStream, *, is_newest: bool) -> str:
    """How a stream is; one that never ended and has a successor does not run any more, whatever it said last."""
    if stream.state == RUNNING and not is_newest:
        return "replaced, without an end"
    return _STATES.get(stream.state, str(stream.state))


def _freshness(recorder: Recorder) -> Tile:
    """When a stream was last heard; a stream that runs and is silent is odd."""
    if not recorder.streams:
        return Tile("Last heard", age(None, recorder.now_wall_ns), "there is no stream")
    newest = max(stream.heard_wall_ns for stream in recorder.streams)
    silent = silent_streams(recorder)
    told = silent_told(len(silent)) if silent else "no stream that runs is silent"
    return Tile("Last heard", age(newest, recorder.now_wall_ns), told, Mood.BAD if silent else Mood.GOOD)


def _stream(stream: RecorderStream, book: StreamLoss, state: str, now_ns: int) -> StreamLine:
    """One stream as a line."""
    return StreamLine(
        stream=_name(book),
        state=state,
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
