"""The thread `kvtrail-store-writer`: the only one that writes to the database.

It takes all that waits, writes it in one transaction, and acknowledges after the commit. While one commit runs the next
group gathers; so an idle store answers at once, and a busy one commits whole row groups (see `backlog.py`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

import duckdb
import pyarrow as pa
from kvtrail_schema.batch import unknown_in
from kvtrail_schema.identity import Stream

from kvtrail_collector.errors import BatchInvalid, CollectorError, StoreBroken, StoreUnusable
from kvtrail_collector.projections import Projection
from kvtrail_collector.store.account import Account, Incoming, Receipt
from kvtrail_collector.store.backlog import ROW_GROUP, Backlog, Share
from kvtrail_collector.store.commit import commit, transaction
from kvtrail_collector.store.foreign import map_duckdb_errors
from kvtrail_collector.store.inbox import Delivery, Errand, Inbox, InboxStatistics, Outcome, Task
from kvtrail_collector.store.plan import make_plan
from kvtrail_collector.store.positions import Position, Positions, advance, write_positions
from kvtrail_collector.store.reach import Reach

GROUP_ROWS: Final = 4 * ROW_GROUP
"""The most rows of one transaction, so that a commit never stalls for long."""

PATIENCE_S: Final = 0.25
"""How long a busy writer waits for a row group to become full."""

BUSY_ROWS: Final = ROW_GROUP // 4
"""A commit of so many rows says that more are on their way."""

_LOG: Final = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")


class WriterStatistics(NamedTuple):
    """What the writer has done since the start, and what waits for it."""

    inbox: InboxStatistics
    commits: int
    """Transactions committed with batches in them."""
    stored: int
    """Rows stored."""
    duplicate: int
    """Rows that were there already and were left out."""
    failed: int
    """Batches that could not be committed."""
    unknown_headers: int
    """Batches whose header named something that this version does not know."""
    alive: bool
    """Whether the thread runs and the database is usable."""


class Writer:
    """Owns the write connection from its start to `close`. `version` grows by one with each commit."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        accounts: dict[Stream, Account],
        projections: Sequence[Projection],
        inbox: Inbox,
        *,
        where: str,
        reach: Reach,
        positions: Positions | None = None,
    ) -> None:
        self._reach = reach
        self._connection = connection  # used by the writer's thread alone
        self._projections = projections
        self._inbox = inbox
        self._where = where
        self._lock = threading.Lock()
        self._accounts = accounts  # guarded by _lock; replaced, never changed in place
        self._positions: Positions = positions or {}  # guarded by _lock; replaced, never changed in place
        self._commits = self._stored = self._duplicate = self._failed = self._version = self._unknown = 0  # guarded by _lock
        self._usable = True  # guarded by _lock
        self.listeners: tuple[Callable[[pa.Table, Iterable[Account]], None], ...] = ()  # replaced, read by the writer's thread
        self._backlog = Backlog()  # used by the writer's thread alone
        self._busy = False  # used by the writer's thread alone
        self._thread = threading.Thread(target=self._run, name="kvtrail-store-writer", daemon=True)
        self._thread.start()

    def submit(self, incoming: Incoming, position: Position | None = None) -> Future[Receipt]:
        """Queue a batch. Any thread; never blocks. The future is done after the commit.

        Raises:
            StoreFull: come again.
            StoreClosed: the writer has ended.
        """
        delivery = Delivery(incoming, position=position)
        self._inbox.put_nowait(delivery)
        return delivery.done

    def run(self, action: Callable[[duckdb.DuckDBPyConnection], _Answer], position: Position | None = None) -> Future[_Answer]:
        """Queue something else for the write connection, in a transaction of its own. As `submit`."""

        def act(connection: duckdb.DuckDBPyConnection, _: Mapping[Stream, Account]) -> Outcome:
            return Outcome({}, action(connection))

        errand = Errand(act, position=position)
        self._inbox.put_nowait(errand)
        return errand.done

    def amend(
        self,
        action: Callable[[duckdb.DuckDBPyConnection, Mapping[Stream, Account]], Mapping[Stream, Account]],
        *,
        reclaim: bool,
    ) -> Future[None]:
        """As `run`, for what changes the books: the action sees them and returns the accounts that it changed.

        With `reclaim`, room that it freed can be used again before anything else is written.
        """

        def act(connection: duckdb.DuckDBPyConnection, accounts: Mapping[Stream, Account]) -> Outcome:
            return Outcome(action(connection, accounts))

        errand = Errand(act, after=_checkpoint if reclaim else None)
        self._inbox.put_nowait(errand)
        return errand.done

    def accounts(self) -> dict[Stream, Account]:
        """The books as the last commit left them. Any thread."""
        with self._lock:
            return self._accounts

    def positions(self) -> Positions:
        """How far each source is stored, as the last commit left it. Any thread."""
        with self._lock:
            return self._positions

    @property
    def version(self) -> int:
        """A number that changes whenever stored data does. Any thread."""
        with self._lock:
            return self._version

    def statistics(self) -> WriterStatistics:
        """What was done and what waits. Any thread."""
        with self._lock:
            return WriterStatistics(
                inbox=self._inbox.statistics(),
                commits=self._commits,
                stored=self._stored,
                duplicate=self._duplicate,
                failed=self._failed,
                unknown_headers=self._unknown,
                alive=self._usable and self._thread.is_alive(),
            )

    def close(self) -> None:
        """Write what waits, then end the thread. Blocks until it has ended; safe to call twice."""
        self._inbox.close()
        self._thread.join()

    def _run(self) -> None:
        """The life of the thread."""
        while self._step():
            pass

    def _step(self) -> bool:
        """Take what waits and commit what is due; False once there is nothing more to come."""
        waited = bool(self._backlog)
        tasks = self._inbox.take_more(ROW_GROUP - self._backlog.rows, PATIENCE_S) if waited else self._inbox.take()
        if not tasks and not waited:
            return False
        for task in tasks:
            self._accept(task)
        if self._commit_whole_groups():
            self._busy = True
        elif waited or not self._busy:
            self._busy = self._backlog.rows >= BUSY_ROWS and not waited
            self._commit_all()
        return True

    def _accept(self, task: Task) -> None:
        """Put a batch to the others; an errand waits until those before it are stored, so that order is kept."""
        if isinstance(task, Errand):
            self._commit_all()
            self._do_errand(task)
        else:
            self._backlog.add(task)

    def _commit_whole_groups(self) -> bool:
        """Commit the rows that fill row groups; says whether there were any."""
        any_full = self._backlog.rows >= ROW_GROUP
        while self._backlog.rows >= ROW_GROUP:
            rows = min(GROUP_ROWS, self._backlog.rows // ROW_GROUP * ROW_GROUP)
            self._store(self._backlog.take(rows))
        return any_full

    def _commit_all(self) -> None:
        """Commit everything, in groups of a bounded size."""
        while self._backlog:
            self._store(self._backlog.take(GROUP_ROWS))

    def _store(self, group: list[Share]) -> None:
        """Commit a group; if it cannot be committed as one, each batch alone, so that one bad batch harms no other."""
        group = [share for share in group if not share.pending.is_told]
        if not group:
            return
        try:
            receipts = self._commit(group)
        except Exception as error:  # noqa: BLE001  # whatever it is, the senders must be told and the thread must live
            self._after_failure(group, error)
        else:
            for share, receipt in zip(group, receipts, strict=True):
                share.settle(receipt)

    def _after_failure(self, group: list[Share], error: Exception) -> None:
        """Try the batches one by one, or tell the only sender."""
        if len(group) == 1 or isinstance(error, StoreUnusable):
            self._tell_failure(group, error)
            return
        for share in group:
            try:
                (receipt,) = self._commit([share])
            except Exception as own:  # noqa: BLE001  # as in _store
                self._tell_failure([share], own)
            else:
                share.settle(receipt)

    def _tell_failure(self, group: list[Share], error: Exception) -> None:
        """Count and pass on a failure."""
        with self._lock:
            self._failed += len(group)
            self._usable = self._usable and not isinstance(error, StoreUnusable)
        _LOG.error("a commit of %d batches failed: %s", len(group), error)
        for share in group:
            share.pending.delivery.done.set_exception(_blame(error, share.pending.delivery))

    def _commit(self, group: list[Share]) -> Sequence[Receipt]:
        """One transaction, then the books in memory."""
        accounts, positions = self.accounts(), self.positions()
        moved = advance(positions, (share.position for share in group))
        plan = replace(make_plan(accounts, [share.incoming for share in group]), positions=moved)
        commit(self._connection, plan, self._projections, where=self._where, reach=self._reach)
        with self._lock:
            self._accounts = {**accounts, **plan.after}
            self._positions = {**positions, **moved}
            self._commits += 1
            self._version += 1
            self._stored += sum(receipt.stored for receipt in plan.receipts)
            self._duplicate += sum(receipt.duplicate for receipt in plan.receipts)
            self._unknown += sum(1 for share in group if share.is_last and unknown_in(share.incoming.batch.header))
        if plan.rows is not None:
            for listener in self.listeners:
                listener(plan.rows, plan.after.values())
        return plan.receipts

    def _do_errand(self, errand: Errand) -> None:
        """Run an errand in its transaction."""
        if not errand.done.set_running_or_notify_cancel():
            return
        accounts, positions = self.accounts(), self.positions()
        try:
            moved = advance(positions, [errand.position])
            with map_duckdb_errors(self._where), transaction(self._connection):
                outcome = errand.action(self._connection, accounts)
                write_positions(self._connection, moved)
        except Exception as error:  # noqa: BLE001  # as in _store
            errand.done.set_exception(error)
        else:
            with self._lock:
                self._accounts = {**accounts, **outcome.changed}
                self._positions = {**positions, **moved}
                self._version += 1
            if errand.after is not None:
                errand.after(self._connection)
            errand.done.set_result(outcome.answer)


def _checkpoint(connection: duckdb.DuckDBPyConnection) -> None:
    """Give room that deleted rows left back to the file. A question that runs can forbid it; then a later one does it."""
    try:
        connection.execute("CHECKPOINT")
    except duckdb.Error as error:
        _LOG.info("no checkpoint now: %s", error)


def _blame(error: Exception, delivery: Delivery) -> CollectorError:
    """The error for a sender: a value that no column can hold is the batch's own fault, all else is the store's."""
    engine = delivery.incoming.batch.header.engine
    if isinstance(error, StoreBroken) and isinstance(error.__cause__, duckdb.DataError):
        return BatchInvalid(error.trouble.what, where=f"batch of {engine}", do="mend the sender; the batch is in quarantine")
    if isinstance(error, CollectorError):
        return error
    return StoreBroken(repr(error), where=f"batch of {engine}", do="report it with this text; nothing of it was kept")
