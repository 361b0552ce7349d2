"""What is to be written down, and is not yet: kept until the store says that it has it. Used under the alerter's turn alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final, NamedTuple

import duckdb

from kvtrail_collector.alerts.audit import MOST_KEPT, DeadLetterBody, write_audit
from kvtrail_collector.alerts.shapes import AuditRow
from kvtrail_collector.errors import CollectorError

Run = Callable[[Callable[[duckdb.DuckDBPyConnection], None]], Future[None]]
_LOG: Final = logging.getLogger(__name__)


class _Batch(NamedTuple):
    """What was handed to the store in one errand."""

    rows: Sequence[AuditRow]
    dead: Sequence[DeadLetterBody]
    done: Future[None]


class Keeping:
    """Hands rows to the store, in one errand a look; what the store did not take goes with the next one. Never blocks."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._rows: list[AuditRow] = []
        self._dead: list[DeadLetterBody] = []
        self._under_way: list[_Batch] = []

    @property
    def waiting(self) -> int:
        """Rows that the store is not known to have."""
        handed = sum(len(batch.rows) + len(batch.dead) for batch in self._under_way)
        return len(self._rows) + len(self._dead) + handed

    def keep(self, rows: Sequence[AuditRow], dead: Sequence[DeadLetterBody] = ()) -> None:
        """Hand these over, and with them what the store did not take before. Over the bound, the oldest are lost, and that is
        logged.
        """
        self._take_back()
        self._rows += rows
        self._dead += dead
        lost = max(len(self._rows) - MOST_KEPT, 0) + max(len(self._dead) - MOST_KEPT, 0)
        if lost:
            _LOG.error("%d rows of what happened with alerts are lost: the store takes none", lost)
            self._rows, self._dead = self._rows[-MOST_KEPT:], self._dead[-MOST_KEPT:]
        if self._rows or self._dead:
            self._hand_over(tuple(self._rows), tuple(self._dead))

    def _take_back(self) -> None:
        """Of what was handed over: forget what was kept, and take back what was not."""
        done = [batch for batch in self._under_way if batch.done.done()]
        self._under_way = [batch for batch in self._under_way if not batch.done.done()]
        for batch in done:
            error = None if batch.done.cancelled() else batch.done.exception()
            if error is not None or batch.done.cancelled():
                _LOG.warning("what happened with alerts was not written down, and is tried again: %r", error)
                self._rows[:0], self._dead[:0] = batch.rows, batch.dead

    def _hand_over(self, rows: tuple[AuditRow, ...], dead: tuple[DeadLetterBody, ...]) -> None:
        """One errand."""
        try:
            done = self._run(lambda connection: write_audit(connection, rows, dead))
        except CollectorError as error:
            _LOG.warning("what happened with alerts is not written down yet: %s", error)
        else:
            self._under_way.append(_Batch(rows, dead, done))
            self._rows, self._dead = [], []
