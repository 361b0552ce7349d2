"""The thread `kvtrail-invariants`: looks at what was committed, and keeps what is broken. The writer never waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
from kvtrail_schema.clock import Clock
from kvtrail_schema.identity import Stream

from kvtrail_collector.alerts.feed import Feed
from kvtrail_collector.detectors.judge import Thresholds
from kvtrail_collector.detectors.one_clock import wall_offset_ns
from kvtrail_collector.detectors.rules import RULES
from kvtrail_collector.errors import CollectorError
from kvtrail_collector.invariants.found import Found
from kvtrail_collector.invariants.kept import KeptStream, read_kept, write_kept
from kvtrail_collector.invariants.rows import NEEDED, Rows
from kvtrail_collector.invariants.silence import HANGS, silent
from kvtrail_collector.invariants.stream_watch import Sort, StreamWatch
from kvtrail_collector.rounds import Rounds
from kvtrail_collector.store import Account, Store

EVERY_S: Final = 1.0
MOST_STREAMS: Final = 32
_KEEP_EVERY_NS: Final = 5_000_000_000
_RECENT_NS: Final = 120_000_000_000
_FAILED: Final = "a look at invariants failed, and diagnose still answers from what is stored"
_LOG: Final = logging.getLogger(__name__)


class WatchStatistics(NamedTuple):
    """What the watch did since its start."""

    rows: int
    left_out: int
    """Rows that it never looked at, because too many waited: of them the stored form alone can tell."""
    spent_ns: int
    streams: int


class InvariantWatch:
    """A context manager. `look` may be called without the thread, by tests and nobody else.

    Holds `MOST_STREAMS` streams, those heard of last; one that makes room is looked at anew when it is heard of again, and
    what follows from absence is not said of it then.
    """

    def __init__(self, store: Store, clock: Clock, thresholds: Thresholds) -> None:
        self._store, self._clock = store, clock
        self._settings = {rule.code: rule.settings(thresholds.get(rule.code, {})) for rule in RULES}
        self.feed = Feed()
        self._turn = threading.Lock()  # one look at a time
        self._watches: dict[int, StreamWatch] = {}  # guarded by _turn; the one heard of last stands last
        self._before: dict[int, dict[Sort, Found]] = {}  # guarded by _turn
        self._until: dict[int, int] = {}  # guarded by _turn
        self._changed: set[int] = set()  # guarded by _turn
        self._kept_ns = 0  # guarded by _turn
        self._under_way: Future[None] | None = None  # guarded by _turn
        self._lock = threading.Lock()
        self._statistics = WatchStatistics(0, 0, 0, 0)  # guarded by _lock
        self._verdicts: dict[int, dict[Sort, Found]] = {}  # guarded by _lock; replaced, never changed
        self._recent: dict[tuple[str, str], float] = {}  # guarded by _lock; as before
        # It does not wait for ingest: what waits for it is bounded, and what is too much is never looked at.
        self._rounds = Rounds("kvtrail-invariants", self._round, every_s=EVERY_S, busy=None, failed=_FAILED)

    def __enter__(self) -> Self:
        """Start looking, from what was kept before."""
        self.begin()
        self._rounds.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Look a last time, and keep what was found."""
        self._rounds.__exit__()
        self.look(is_last=True)

    def begin(self) -> None:
        """Read what was kept, and hear of commits from now on."""
        with self._turn, self._store.read() as cursor:
            found, self._until = read_kept(cursor)
            self._before = {
                own: {sort: one for sort, one in all_.items() if one.code not in HANGS} for own, all_ in found.items()
            }
        self._store.on_commit(self.feed.offer)

    def verdicts(self) -> dict[int, dict[Sort, Found]]:
        """What is broken, by stream. Any thread; cheap."""
        with self._lock:
            return self._verdicts

    def recent(self) -> dict[tuple[str, str], float]:
        """How many sorts of each code, `verdict:CODE`, each engine had in its last two minutes. Any thread; cheap."""
        with self._lock:
            return self._recent

    def statistics(self) -> WatchStatistics:
        """What it did. Any thread; cheap."""
        with self._lock:
            return self._statistics

    def look(self, *, is_last: bool = False) -> None:
        """Take in what was committed since the last look. Some 0.4 µs a row; more where rows are few."""
        with self._turn:
            began_ns = self._clock.monotonic_ns()
            rows = 0
            for stream_id, table in _by_stream([one.rows for one in self.feed.take()]):
                rows += table.num_rows
                self._watch(stream_id).look(Rows(table))
                self._changed.add(stream_id)
            if rows or is_last:
                self._tell(self._store.accounts().values())
            self._keep(is_last=is_last)
            self._count(rows, self._clock.monotonic_ns() - began_ns)

    def _watch(self, stream_id: int) -> StreamWatch:
        """The watch of a stream; the one heard of longest ago makes room."""
        watch = self._watches.pop(stream_id, None)
        if watch is None:
            watch = StreamWatch(self._settings, until_seq=self._until.get(stream_id, 0))
        self._watches[stream_id] = watch
        if len(self._watches) > MOST_STREAMS:
            oldest = next(iter(self._watches))
            self._before[oldest] = self._all_of(oldest, self._watches[oldest])
            self._until[oldest] = self._watches.pop(oldest).progress.until_seq
        return watch

    def _all_of(self, stream_id: int, watch: StreamWatch) -> dict[Sort, Found]:
        """What was found in a stream, before and now."""
        found = dict(self._before.get(stream_id, {}))
        for sort, one in watch.found().items():
            found[sort] = found[sort].plus(one) if sort in found else one
        return found

    def _tell(self, accounts: Iterable[Account]) -> None:
        """Let others read what is broken now."""
        streams, offset_ns = {}, {}
        for account in accounts:
            streams[account.stream_id] = account.stream
            if (offset := wall_offset_ns(account.marks.clocks)) is not None:
                offset_ns[account.stream] = offset
        found = {own: self._all_of(own, watch) for own, watch in self._watches.items()}
        lives = {streams[own]: watch.life for own, watch in self._watches.items() if own in streams}
        hangs = silent(lives, offset_ns, self._settings)
        for own in self._watches:
            for one in hangs.get(streams[own], []) if own in streams else []:
                found[own][one.code, one.tier, one.what] = one
        recent = _recent(found, streams, self._watches)
        with self._lock:
            self._verdicts = {**self._before, **found}
            self._recent = recent

    def _keep(self, *, is_last: bool) -> None:
        """Write down what changed, now and then, and at the end; what the store does not take is tried again."""
        now_ns = self._clock.monotonic_ns()
        is_busy = self._under_way is not None and not self._under_way.done()
        if not self._changed or (not is_last and (is_busy or now_ns - self._kept_ns < _KEEP_EVERY_NS)):
            return
        verdicts = self.verdicts()
        kept = {
            own: KeptStream(verdicts.get(own, {}), self._watches[own].progress, self._watches[own].unknown())
            for own in self._changed
            if own in self._watches
        }
        try:
            self._under_way = self._store.run(lambda connection: write_kept(connection, kept))
            if is_last:
                self._under_way.result()
        except CollectorError as error:
            _LOG.warning("broken invariants are not written down yet: %s", error)
        else:
            self._changed, self._kept_ns = set(), now_ns

    def _count(self, rows: int, spent_ns: int) -> None:
        """Add to the statistics."""
        with self._lock:
            before = self._statistics
            self._statistics = WatchStatistics(
                before.rows + rows, self.feed.left_out, before.spent_ns + spent_ns, len(self._watches)
            )

    def _round(self) -> bool:
        """A look; the next one is not due at once."""
        self.look()
        return False


def _by_stream(tables: Iterable[pa.Table]) -> list[tuple[int, pa.Table]]:
    """Rows of several commits, stream by stream, in the order in which they were committed."""
    chosen = [table.select([name for name in NEEDED if name in table.schema.names]) for table in tables if table.num_rows]
    if not chosen:
        return []
    together = pa.concat_tables(chosen)
    streams = together["stream_id"].to_numpy()
    numbers = np.unique(streams).tolist()
    return [(number, together if len(numbers) == 1 else together.filter(pa.array(streams == number))) for number in numbers]


def _recent(
    found: Mapping[int, Mapping[Sort, Found]], streams: Mapping[int, Stream], watches: Mapping[int, StreamWatch]
) -> dict[tuple[str, str], float]:
    """What happened lately, by code and engine."""
    counted: dict[tuple[str, str], float] = {}
    for own, all_ in found.items():
        if own in streams:
            for one in all_.values():
                if one.last_ns >= watches[own].life.last_ns - _RECENT_NS:
                    key = (f"verdict:{one.code}", streams[own].engine)
                    counted[key] = counted.get(key, 0.0) + 1
    return counted
