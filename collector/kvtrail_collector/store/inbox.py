"""The bounded queue before the writer: many threads put, one thread takes all that is there."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import duckdb
from kvtrail_schema.identity import Stream

from kvtrail_collector.errors import StoreClosed, StoreFull
from kvtrail_collector.store.account import Account, Incoming, Receipt
from kvtrail_collector.store.hot import Spread
from kvtrail_collector.store.positions import Position


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """A batch on its way into the store; `done` gets its receipt after the commit."""

    incoming: Incoming
    done: Future[Receipt] = field(default_factory=Future)
    position: Position | None = None
    spread: Spread = field(init=False)
    """Which of its rows fill row groups; found out on the thread of the sender."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "spread", Spread(self.incoming.batch.table))

    @property
    def size_bytes(self) -> int:
        """The memory that waits with it. Columns in which nothing stands share one run of zeros, which is not counted."""
        columns = self.incoming.batch.table.columns
        return sum(int(column.nbytes) for column in columns if column.null_count < len(column))

    @property
    def common_rows(self) -> int:
        """The rows that wait with it for a row group to be full."""
        return self.spread.common


class Outcome(NamedTuple):
    """What an errand did: the accounts that it changed, and the answer for whoever sent it."""

    changed: Mapping[Stream, Account]
    answer: object = None


@dataclass(frozen=True, slots=True, eq=False)
class Errand:
    """Something else that only the writer's connection may do, in a transaction of its own.

    It sees the books; `done` gets its answer after the commit. `after`, if any, runs behind the commit, in no transaction.
    """

    action: Callable[[duckdb.DuckDBPyConnection, Mapping[Stream, Account]], Outcome]
    done: Future[Any] = field(default_factory=Future)
    size_bytes: int = 0
    position: Position | None = None
    after: Callable[[duckdb.DuckDBPyConnection], None] | None = None


Task = Delivery | Errand


class InboxStatistics(NamedTuple):
    """How full the queue is."""

    waiting: int
    """Tasks that the writer has not taken yet."""
    capacity: int
    """Tasks that fit."""
    waiting_bytes: int
    """Memory of the tasks that wait."""
    capacity_bytes: int
    """Memory that may wait."""
    refused: int
    """Tasks refused since the start, because the queue was full."""
    waiting_rows: int
    """Common rows of the batches that wait."""


class Inbox:
    """Bounded by number and by memory. `put_nowait` refuses, it never waits; one task is accepted whatever its size."""

    def __init__(self, *, capacity: int, capacity_bytes: int) -> None:
        self._capacity = capacity
        self._capacity_bytes = capacity_bytes
        self._changed = threading.Condition()
        self._tasks: deque[Task] = deque()  # guarded by _changed
        self._waiting_bytes = 0  # guarded by _changed
        self._waiting_rows = 0  # guarded by _changed
        self._errands = 0  # guarded by _changed; how many of the tasks
        self._refused = 0  # guarded by _changed
        self._closed = False  # guarded by _changed

    def put_nowait(self, task: Task) -> None:
        """Hand a task to the writer. Any thread; never blocks.

        Raises:
            StoreFull: too much waits already; come again.
            StoreClosed: the writer takes no more.
        """
        with self._changed:
            if self._closed:
                raise StoreClosed("the store is closing", where="store", do="send again when the collector is back")
            if not self._has_room(task):
                self._refused += 1
                raise StoreFull("the write queue is full", where="store", do="wait and send again; nothing was stored")
            self._tasks.append(task)
            self._waiting_bytes += task.size_bytes
            if isinstance(task, Delivery):
                self._waiting_rows += task.common_rows
            else:
                self._errands += 1
            self._changed.notify()

    def take(self) -> list[Task]:
        """Everything that waits, in order; blocks until there is something. Empty once closed and drained."""
        with self._changed:
            self._changed.wait_for(lambda: self._tasks or self._closed)
            return self._take_all()

    def take_more(self, enough_rows: int, patience_s: float) -> list[Task]:
        """Everything that waits, once it has so many common rows or an errand; blocks no longer than the patience lasts."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._waiting_rows >= enough_rows or self._errands or self._closed, timeout=patience_s
            )
            return self._take_all()

    def close(self) -> None:
        """Accept nothing more; what waits will still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def statistics(self) -> InboxStatistics:
        """How full it is now. Any thread."""
        with self._changed:
            return InboxStatistics(
                waiting=len(self._tasks),
                capacity=self._capacity,
                waiting_bytes=self._waiting_bytes,
                capacity_bytes=self._capacity_bytes,
                refused=self._refused,
                waiting_rows=self._waiting_rows,
            )

    def _take_all(self) -> list[Task]:
        """Empty the queue. Called with _changed held."""
        tasks = list(self._tasks)
        self._tasks.clear()
        self._waiting_bytes = self._waiting_rows = self._errands = 0
        return tasks

    def _has_room(self, task: Task) -> bool:
        """Whether a task fits. Called with _changed held."""
        if not self._tasks:
            return True
        return len(self._tasks) < self._capacity and self._waiting_bytes + task.size_bytes <= self._capacity_bytes
