"""From the writer to the thread `kvtrail-alerts`: commits as they are made, as many as fit; the writer never waits."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

import pyarrow as pa

from kvtrail_collector.alerts.batch import Origin
from kvtrail_collector.store.account import Account

_MOST_ROWS: Final = 2_000_000
"""Rows that may wait; beyond them the oldest commits are left out, and counted: alerts are about now."""


class Committed(NamedTuple):
    """The new rows of one commit, and whose they are."""

    rows: pa.Table
    origins: dict[int, Origin]


class Feed:
    """A bounded queue. `offer` by the writer's thread, `take` by one other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Committed] = deque()  # guarded by _lock
        self._rows = 0  # guarded by _lock
        self._left_out = 0  # guarded by _lock

    def offer(self, rows: pa.Table, accounts: Iterable[Account]) -> None:
        """Take a commit in: microseconds, on the writer's thread."""
        origins = {account.stream_id: _origin(account) for account in accounts}
        with self._lock:
            self._waiting.append(Committed(rows, origins))
            self._rows += rows.num_rows
            while self._rows > _MOST_ROWS and len(self._waiting) > 1:
                oldest = self._waiting.popleft().rows.num_rows
                self._rows -= oldest
                self._left_out += oldest

    def take(self) -> list[Committed]:
        """All that waits."""
        with self._lock:
            taken = list(self._waiting)
            self._waiting.clear()
            self._rows = 0
        return taken

    @property
    def left_out(self) -> int:
        """Rows that alerts never looked at, because too many waited. Any thread."""
        with self._lock:
            return self._left_out


def _origin(account: Account) -> Origin:
    """Whose rows a stream's are."""
    clocks = account.marks.clocks
    return Origin(account.stream.engine, account.stream.rank, clocks.wall_ns - clocks.monotonic_ns)
