"""Which streams are alive: of each rank the newest process counts, since what a restart left behind is silent for good."""

from collections.abc import Iterator, Sequence
from typing import Final

from kvtrail_dashboards.compute.ages import age
from kvtrail_dashboards.compute.notices import Level, Notice
from kvtrail_dashboards.page_answers import Recorder, RecorderStream

RUNNING: Final = 0
KILLED: Final = 2
_FRESH_NS: Final = 5_000_000_000


def newest_of_ranks(recorder: Recorder) -> tuple[RecorderStream, ...]:
    """Of each rank of each engine, the stream that was heard of last."""
    newest: dict[tuple[str, int], RecorderStream] = {}
    for stream in sorted(recorder.streams, key=lambda one: one.heard_wall_ns):
        newest[stream.engine, stream.rank] = stream
    return tuple(newest.values())


def silent_streams(recorder: Recorder) -> tuple[RecorderStream, ...]:
    """Those that say that they run, of which nothing was heard for a while, and which nothing replaced."""
    return tuple(
        one
        for one in newest_of_ranks(recorder)
        if one.state == RUNNING and recorder.now_wall_ns - one.heard_wall_ns > _FRESH_NS
    )


def silent_told(count: int) -> str:
    """How many run and are silent."""
    return f"{count:,} {'stream runs and is' if count == 1 else 'streams run and are'} silent"


def stale_notices(recorder: Recorder) -> Iterator[Notice]:
    """What stands on a page is of then, and not of now, where the engine or its recorder is gone."""
    silent = silent_streams(recorder)
    if silent:
        newest = age(max(one.heard_wall_ns for one in silent), recorder.now_wall_ns)
        do = "Engine, agent or network is down, and what stands below is of then. Look at the page Recorder."
        what = f"{_ranks(silent)} says that it runs, and is silent: its last sign of life came {newest}."
        yield Notice(Level.WARNING, what, do)
    killed = [one for one in newest_of_ranks(recorder) if one.state == KILLED]
    if killed:
        newest = age(max(one.heard_wall_ns for one in killed), recorder.now_wall_ns)
        do = "Nothing has taken its place, and what stands below is of then. Start the engine anew, or see why it died."
        yield Notice(Level.WARNING, f"{_ranks(killed)} ended without closing its record, {newest}.", do)


def _ranks(streams: Sequence[RecorderStream]) -> str:
    """Streams by their ranks."""
    ranks = sorted({one.rank for one in streams})
    return f"Rank {ranks[0]}" if len(ranks) == 1 else f"Each of the ranks {', '.join(map(str, ranks))}"
