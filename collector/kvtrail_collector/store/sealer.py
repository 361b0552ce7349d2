"""Moves old events out of the hot file, and lets the oldest go: the thread `kvtrail-sealer`, beside the writer.

A part goes through three states, and a crash in any of them loses and doubles nothing: its file is written under another
name (a start removes it); its file is there and no book knows it (a start removes it, the rows are still hot); one
transaction takes the rows out and writes the books (both, or neither).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

import duckdb
from kvtrail_schema.clock import Clock

from kvtrail_collector.errors import CollectorError
from kvtrail_collector.projections import Projection
from kvtrail_collector.store.part_file import part_name, write_part_file
from kvtrail_collector.store.parts import Part, Seqs
from kvtrail_collector.store.seal_commit import Accounts, expire, take_out
from kvtrail_collector.store.seal_policy import SealPolicy
from kvtrail_collector.store.seal_read import Due, find_due, ranges_of, rows_of

_PARTS_A_PASS: Final = 64
_NO_CHANGE: Final[Accounts] = {}
_LOG: Final = logging.getLogger(__name__)


class SealStatistics(NamedTuple):
    """What is sealed, and what sealing did since the start."""

    parts: int = 0
    """Sealed files."""
    rows: int = 0
    """Events in them."""
    size_bytes: int = 0
    """Their size."""
    expired_rows: int = 0
    """Events that retention let go since the start."""
    failures: int = 0
    """Passes that failed since the start; each was, or will be, tried again."""


class Amend(Protocol):
    """**Protocol:** runs an action on the write connection in a transaction, with the books, which it may change."""

    def __call__(self, action: Callable[[duckdb.DuckDBPyConnection, Accounts], Accounts], *, reclaim: bool) -> Future[None]:
        """Queue it. The future is done after the commit; `reclaim` gives freed room back to the file after it."""
        ...


class Sealer:
    """Seals and expires by a policy. `run_once` may be called from any thread; calls take turns."""

    def __init__(
        self,
        policy: SealPolicy,
        parts: Sequence[Part],
        projections: Sequence[Projection],
        *,
        read: Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]],
        amend: Amend,
        clock: Clock,
    ) -> None:
        self._policy = policy
        self._projections = projections
        self._read = read
        self._amend = amend
        self._clock = clock
        self._turn = threading.Lock()  # held for a whole pass
        self._lock = threading.Lock()
        self._parts = tuple(parts)  # guarded by _lock; replaced, never changed in place
        self._expired_rows = self._failures = 0  # guarded by _lock
        self._unlinked: tuple[Part, ...] = ()  # guarded by _turn; expired a pass ago, so no question reads them any more
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to run on a thread of its own, where the policy says how often."""
        if self._policy.every_s > 0:
            self._thread = threading.Thread(target=self._run, name="kvtrail-sealer", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread after the pass that it is in. Blocks."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def statistics(self) -> SealStatistics:
        """What is sealed now. Any thread; cheap."""
        with self._lock:
            return SealStatistics(
                parts=len(self._parts),
                rows=sum(part.rows for part in self._parts),
                size_bytes=sum(part.size_bytes for part in self._parts),
                expired_rows=self._expired_rows,
                failures=self._failures,
            )

    def run_once(self) -> None:
        """Seal all that is due and let go what may not be kept. Blocks for about a second a million events.

        Raises:
            CollectorError, OSError: nothing is lost; what was done so far stays, the rest is tried again.
        """
        with self._turn:
            self._unlink(self._unlinked)
            self._unlinked = ()
            now_wall_ns = self._clock.wall_ns()
            for _ in range(_PARTS_A_PASS):
                if self._done.is_set() or not self._seal_one(now_wall_ns):
                    break
            self._expire(now_wall_ns)

    def _run(self) -> None:
        """The life of the thread."""
        while not self._done.wait(self._policy.every_s):
            try:
                self.run_once()
            except (CollectorError, OSError) as error:
                _LOG.warning("sealing failed, and is tried again: %s", error)
                self._count_failure()
            except Exception:  # noqa: BLE001 - a defect in one pass must not end sealing and retention
                _LOG.exception("sealing failed, and is tried again")
                self._count_failure()

    def _count_failure(self) -> None:
        """One pass more that failed."""
        with self._lock:
            self._failures += 1

    def _seal_one(self, now_wall_ns: int) -> bool:
        """Seal one part, if one is due."""
        with self._read() as cursor:
            cursor.begin()
            due = find_due(cursor, self._policy, now_wall_ns)
            if due is None:
                return False
            part = self._write(cursor, due)
            seqs = ranges_of(cursor, due)
        try:
            self._amend(self._taking_out(part, seqs, due), reclaim=True).result()
        except BaseException:
            (self._policy.folder / part.file).unlink(missing_ok=True)
            raise
        with self._lock:
            self._parts = (*self._parts, part)
        return True

    def _write(self, cursor: duckdb.DuckDBPyConnection, due: Due) -> Part:
        """Write the file of a part; no book knows it yet."""
        with self._lock:
            part_id = 1 + max((part.part_id for part in self._parts), default=0)
        name = part_name(part_id)
        size_bytes = write_part_file(self._policy.folder / name, rows_of(cursor, due))
        return Part(part_id, name, due.rows, size_bytes, due.last_wall_ns)

    def _taking_out(self, part: Part, seqs: Seqs, due: Due) -> Callable[[duckdb.DuckDBPyConnection, Accounts], Accounts]:
        """The action that takes a part's rows out of the hot tables."""

        def act(connection: duckdb.DuckDBPyConnection, _: Accounts) -> Accounts:
            take_out(connection, part, seqs, due, self._policy.folder)
            return _NO_CHANGE

        return act

    def _expire(self, now_wall_ns: int) -> None:
        """Let parts go that are too old, or too many bytes; their files go with the next pass."""
        with self._lock:
            parts = self._parts
        gone = expired_parts(parts, self._policy, now_wall_ns)
        if not gone:
            return
        folder = self._policy.folder

        def act(connection: duckdb.DuckDBPyConnection, accounts: Accounts) -> Accounts:
            return expire(connection, accounts, gone, folder, self._projections)

        self._amend(act, reclaim=True).result()
        with self._lock:
            self._parts = tuple(part for part in parts if part not in gone)
            self._expired_rows += sum(part.rows for part in gone)
        self._unlinked = gone

    def _unlink(self, parts: Sequence[Part]) -> None:
        """Remove the files of parts that no book knows any more."""
        for part in parts:
            (self._policy.folder / part.file).unlink(missing_ok=True)


def expired_parts(parts: Sequence[Part], policy: SealPolicy, now_wall_ns: int) -> tuple[Part, ...]:
    """The oldest parts, as many as are too old or, with all after them, too large. Pure."""
    left_bytes = sum(part.size_bytes for part in parts)
    gone: list[Part] = []
    for part in parts:
        too_old = policy.retention_ns is not None and part.last_wall_ns < now_wall_ns - policy.retention_ns
        too_large = policy.retention_bytes is not None and left_bytes > policy.retention_bytes
        if not too_old and not too_large:
            break
        gone.append(part)
        left_bytes -= part.size_bytes
    return tuple(gone)
