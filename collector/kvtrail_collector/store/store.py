"""The store: one DuckDB file, one writer thread, as many readers as ask."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

import duckdb
import pyarrow as pa
from kvtrail_schema.clock import Clock, SystemClock
from kvtrail_schema.identity import Stream

from kvtrail_collector.projections import PROJECTIONS, Projection
from kvtrail_collector.projections.views import make_views
from kvtrail_collector.store.account import Account, Incoming, Receipt
from kvtrail_collector.store.books import load_accounts
from kvtrail_collector.store.commit import transaction
from kvtrail_collector.store.foreign import map_duckdb_errors
from kvtrail_collector.store.fresh import MEMORY, fresh_files
from kvtrail_collector.store.inbox import Inbox
from kvtrail_collector.store.migrate import migrate
from kvtrail_collector.store.parts import ALL, Part
from kvtrail_collector.store.positions import Position, Positions, load_positions
from kvtrail_collector.store.quarantine import Quarantined
from kvtrail_collector.store.reach import Reach
from kvtrail_collector.store.seal_open import open_parts
from kvtrail_collector.store.seal_policy import SealPolicy
from kvtrail_collector.store.sealer import Sealer, SealStatistics
from kvtrail_collector.store.touched import touch
from kvtrail_collector.store.writer import BUSY_ROWS, Writer, WriterStatistics

_Answer = TypeVar("_Answer")

_CHECKPOINT: Final = "96MB"
"""Larger ones stall commits for a second and more."""

_STORAGE: Final = "latest"
"""The file format of this DuckDB: it packs the null flags, of which there is one a field and row, and texts better."""


class Store:
    """Owns the file from `open` to `close`; no other process can open it meanwhile, not even to read."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, writer: Writer, projections: Sequence[Projection], where: str, reach: Reach
    ) -> None:
        self._projections, self._where, self._reach = projections, where, reach
        self._writer = writer
        self._lock = threading.Lock()
        self._connection = connection  # guarded by _lock; makes cursors, runs nothing itself
        self._sealer: Sealer | None = None  # set while the store is opened

    @classmethod
    def open(
        cls,
        path: str,
        *,
        queue_batches: int = 256,
        queue_bytes: int = 256 << 20,
        memory_limit: str | None = None,
        projections: Sequence[Projection] = PROJECTIONS,
        seal: SealPolicy | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """Open or make a store, bring its tables to this version, and start its writer. Blocks for as long as that takes.

        Args:
            path: the DuckDB file, or `MEMORY`. A new file is readable by its owner alone.
            queue_batches: how many batches may wait for the writer.
            queue_bytes: how much memory may wait with them.
            memory_limit: the most memory that DuckDB takes, as `2GB`; absent, 80 % of the machine's.
            projections: what is computed in the same transaction.
            seal: when events leave the file, and where they go; absent, no more leave it, and those that did lie in
                `sealed_folder(path)`.
            clock: the wall clock that sealing goes by; absent, the machine's.

        Raises:
            StoreUnavailable: not a store, not ours, another process holds it, or none of its sealed files is there.
            StoreNewer: a newer kvtrail wrote it.
        """
        folder = seal.folder if seal is not None else sealed_folder(path)
        with map_duckdb_errors(path), fresh_files(path) as fresh:
            fresh.make_folders()
            connection = _connect(path, memory_limit)
            try:
                migrate(connection, where=path)
                _harden(connection, folder)
                parts, accounts = open_parts(connection, load_accounts(connection), folder)
                with transaction(connection):
                    make_views(connection)
                inbox = Inbox(capacity=queue_batches, capacity_bytes=queue_bytes)
                positions, reach = load_positions(connection), Reach.load(connection)
                writer = Writer(connection.cursor(), accounts, projections, inbox, where=path, reach=reach, positions=positions)
            except BaseException:
                connection.close()
                raise
            fresh.keep()
        store = cls(connection, writer, projections, path, reach)
        if seal is not None:
            store._begin_sealing(seal, parts, clock or SystemClock())
        return store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def where(self) -> str:
        """The path of the file."""
        return self._where

    @property
    def version(self) -> int:
        """A number that changes whenever stored data does. Any thread."""
        return self._writer.version

    def submit(self, incoming: Incoming, position: Position | None = None) -> Future[Receipt]:
        """Queue a batch. Any thread; never blocks. The future is done after the commit: the rows are on disk by then.

        A position is stored in the same transaction, and only where it follows the one that is stored; else the future
        fails with `PositionMoved`, and nothing of the batch is kept.

        Raises:
            StoreFull: come again.
            StoreClosed: the store has been closed.
        """
        return self._writer.submit(incoming, position)

    def quarantine(self, item: Quarantined, position: Position | None = None) -> Future[None]:
        """Queue a batch that could not be read. As `submit`."""
        return self._writer.run(item.keep, position)

    def run(self, action: Callable[[duckdb.DuckDBPyConnection], _Answer]) -> Future[_Answer]:
        """Queue a piece of work for the write connection, behind the batches before it. Any thread; never blocks.

        It runs on the writer's thread, between commits, in a transaction of its own: all that it writes, or nothing. The
        future is done after the commit, with what the action returned; if it raised, with that error, and nothing is kept.
        No batch is stored while it runs: keep it to milliseconds, and compute elsewhere, on a cursor of `read`.

        Raises:
            StoreFull: come again.
            StoreClosed: the store has been closed.
        """
        return self._writer.run(action)

    def rebuild(self) -> Future[None]:
        """Compute all projections again from events, in one transaction. As `submit`; takes seconds a million events.

        Every request is touched, so that what is computed outside ingest is computed again, too.
        """
        return self._writer.run(self._rebuild)

    def announce(self, stream_id: int, end_ns: int) -> None:
        """Say that what follows from a stream's rows up to a time is computed now, on a cursor of which nothing was asked yet.

        Rows that are committed later and change it touch its requests. Any thread but the writer's; waits for the commit
        that is under way.
        """
        self._reach.announce(stream_id, end_ns)

    def accounts(self) -> dict[Stream, Account]:
        """The books of all streams, as the last commit left them. Any thread; cheap."""
        return self._writer.accounts()

    def positions(self) -> Positions:
        """How far each source is stored, as the last commit left it. Any thread; cheap."""
        return self._writer.positions()

    def on_commit(self, listener: Callable[[pa.Table, Iterable[Account]], None]) -> None:
        """Let somebody hear of the new rows of each commit from now on, with the books of their streams.

        It is called on the writer's thread, after the commit: it must return at once and never raise.
        """
        self._writer.listeners = (*self._writer.listeners, listener)

    def statistics(self) -> WriterStatistics:
        """What the writer did and what waits for it. Any thread; cheap."""
        return self._writer.statistics()

    def is_filling(self) -> bool:
        """Whether as many events wait as make a writer busy: what can wait should let it write. Any thread; cheap."""
        return self._writer.statistics().inbox.waiting_rows >= BUSY_ROWS

    def sealed(self) -> SealStatistics:
        """What is sealed and what sealing did; nothing where no policy was given. Any thread; cheap."""
        return self._sealer.statistics() if self._sealer is not None else SealStatistics()

    def hot_bytes(self) -> int:
        """The size of the file without its log; 0 for a store in memory. Any thread; asks the file system."""
        try:
            return Path(self._where).stat().st_size if self._where != MEMORY else 0
        except OSError:
            return 0

    def seal_now(self) -> None:
        """Seal what is due and let go what may not be kept, on the calling thread. Does nothing without a policy.

        Raises:
            CollectorError, OSError: nothing is lost; it is tried again.
        """
        if self._sealer is not None:
            self._sealer.run_once()

    @contextmanager
    def read(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor of the caller's own, that sees what is committed. Any thread but an event loop's; costs about 0.1 ms.

        Raises:
            StoreError: in the caller's block, for any error of DuckDB's.
        """
        with map_duckdb_errors(self._where):
            with self._lock:
                cursor = self._connection.cursor()
            try:
                yield cursor
            finally:
                cursor.close()

    def close(self) -> None:
        """Write what waits, then close the file. Blocks; safe to call twice."""
        if self._sealer is not None:
            self._sealer.close()
        self._writer.close()
        with self._lock:
            self._connection.close()

    def _begin_sealing(self, policy: SealPolicy, parts: Sequence[Part], clock: Clock) -> None:
        """Start the sealer, once everything else is there."""
        self._sealer = Sealer(policy, parts, self._projections, read=self.read, amend=self._writer.amend, clock=clock)
        self._sealer.start()

    def _rebuild(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Runs on the writer's thread, in a transaction."""
        for projection in self._projections:
            connection.execute(projection.clear())
            connection.execute(projection.merge_from(ALL))
        connection.execute(_NOBODYS)
        connection.execute(touch("requests"))


_NOBODYS: Final = """
DELETE FROM request_ledgers
WHERE NOT EXISTS (FROM requests WHERE requests.stream_id = request_ledgers.stream_id AND requests.req = request_ledgers.req)
"""
"""Ledgers of requests of which there is no event: nobody touches those, so nobody would compute them again."""


def _connect(path: str, memory_limit: str | None) -> duckdb.DuckDBPyConnection:
    """The one connection to the file, which only its owner may read."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "checkpoint_threshold": _CHECKPOINT,
        "storage_compatibility_version": _STORAGE,
    }
    if memory_limit is not None:
        config["memory_limit"] = memory_limit
    connection = duckdb.connect(path, config=config)
    if path != MEMORY:
        Path(path).chmod(0o600)
    return connection


def sealed_folder(path: str) -> Path | None:
    """Where a store's sealed files lie unless a policy says otherwise: beside it; a store in memory has none."""
    return None if path == MEMORY else Path(f"{path}.sealed").absolute()


def _harden(connection: duckdb.DuckDBPyConnection, folder: Path | None) -> None:
    """No SQL may reach other files than the sealed ones, or the network, from here, or change this."""
    if folder is not None:
        allowed = f"{folder.absolute()}/".replace("'", "''")
        connection.execute(f"SET allowed_directories = ['{allowed}']")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
