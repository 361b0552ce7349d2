"""Keeps the ledgers of stored requests: the thread `kvtrail-ledger`, beside the writer and outside ingest."""

from __future__ import annotations

import threading
from typing import Final, NamedTuple, Self

import duckdb
import numpy as np
from kvtrail_schema.clock import Clock

from kvtrail_collector.ledger_open import one_moment, with_holes
from kvtrail_collector.ledger_pass import Computed, compute, keep
from kvtrail_collector.questions.rows import streams
from kvtrail_collector.rounds import Rounds
from kvtrail_collector.store import (
    Store,
    Touched,
    last_touch,
    linked_requests,
    settle_ops,
    streams_with_late_ops,
    take_touched,
)

_MOST_AT_ONCE: Final = 50_000
_EVERY_S: Final = 1.0
_FAILED: Final = "ledgers could not be kept"
_EXPIRED: Final = """
INSERT INTO touched_requests BY NAME
SELECT stream_id, req, 1 + (SELECT coalesce(max(touch), 0) FROM touched_requests) AS touch
FROM request_ledgers ANTI JOIN (FROM requests WHERE arrived_ns IS NOT NULL) USING (stream_id, req)
"""
"""Ledgers of requests whose events were let go: touched once more, they are found gone."""


class LedgerStatistics(NamedTuple):
    """What the keeper did since its start."""

    requests: int = 0
    """Ledgers kept, those computed again counted again."""
    failures: int = 0
    """Passes that failed; each was, or will be, tried again."""


class LedgerKeeper:
    """Computes ledgers of touched requests about once a second. A context manager; `run_once` may be called by any thread."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._turn = threading.Lock()  # one pass at a time
        self._seen_version = -1  # guarded by _turn
        self._seen_expired = 0  # guarded by _turn
        self._lock = threading.Lock()
        self._kept = 0  # guarded by _lock
        self._rounds = Rounds("kvtrail-ledger", self._pass, every_s=_EVERY_S, busy=store.is_filling, failed=_FAILED)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._rounds.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """End the thread, after the pass that is under way."""
        self._rounds.__exit__()

    def statistics(self) -> LedgerStatistics:
        """What it did. Any thread; cheap."""
        with self._lock:
            return LedgerStatistics(requests=self._kept, failures=self._rounds.failures)

    def _pass(self) -> bool:
        """A pass; says whether there is much more to do."""
        return self.run_once() >= _MOST_AT_ONCE // 2

    def run_once(self) -> int:
        """Compute and keep what can be now; returns for how many requests. Blocks for seconds where many are touched.

        Raises:
            CollectorError: nothing is lost; it is tried again.
        """
        with self._turn:
            version = self._store.version
            self._touch_expired()
            self._touch_linked()
            with self._store.read() as cursor:
                touched = take_touched(cursor, _MOST_AT_ONCE)
                changed = set(_streams(touched)) | self._with_holes(cursor, version)
                known = [stream for stream in streams(cursor) if stream.stream_id in changed]
                # While events wait, a stream of which nothing was stored lately may not be silent at all.
                now = 0 if self._store.is_filling() else self._clock.wall_ns()
                computed = [
                    compute(cursor, stream, _requests(touched, stream.stream_id), now, self._store.announce) for stream in known
                ]
            if any(computed):
                self._store.run(lambda connection: keep(connection, touched, computed)).result()
            self._seen_version = version  # after all of it: what failed is looked for again, also where nothing new comes
        return self._count(computed)

    def _touch_expired(self) -> None:
        """Touch what retention let go of since the last pass."""
        expired = self._store.sealed().expired_rows
        if expired != self._seen_expired:
            self._store.run(lambda connection: connection.execute(_EXPIRED)).result()
            self._seen_expired = expired

    def _touch_linked(self) -> None:
        """Touch the requests that hang on transfers of which rows came late."""
        with self._store.read() as cursor, one_moment(cursor):
            late, until = streams_with_late_ops(cursor), last_touch(cursor)
            linked = linked_requests(cursor, late)
        if late:
            self._store.run(lambda connection: settle_ops(connection, linked, until)).result()

    def _with_holes(self, cursor: duckdb.DuckDBPyConnection, version: int) -> set[int]:
        """The streams that have holes, or had, where anything was stored since the last pass that went well."""
        if version == self._seen_version:
            return set()
        return with_holes(cursor)

    def _count(self, computed: list[Computed]) -> int:
        """Add to the statistics."""
        kept = sum(each.rows.num_rows for each in computed)
        with self._lock:
            self._kept += kept
        return kept


def _streams(touched: Touched) -> list[int]:
    """The streams of touched requests."""
    return [int(stream) for stream in np.unique(touched.requests["stream_id"].to_numpy()).tolist()]


def _requests(touched: Touched, stream_id: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """The touched requests of one stream."""
    own = touched.requests["stream_id"].to_numpy() == stream_id
    return np.asarray(touched.requests["req"].to_numpy()[own], dtype=np.uint64)
