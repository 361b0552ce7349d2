"""Records of a partitioned source into the store, in order: decode, store, and the position with it; or quarantine.

The verbs are those of a pipeline of steps: `submit` takes a record or says "come again", `poll` looks at what became of
those before, `join` waits for all. Used by the one thread of its source; never blocks but in `join`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from enum import Enum
from typing import Any, Final, NamedTuple

from kvtrail_schema.batch import Limits
from kvtrail_schema.clock import Clock

from kvtrail_collector.errors import BatchInvalid, PositionMoved, StoreError
from kvtrail_collector.steps.decode import decode, engine_of
from kvtrail_collector.store import Place, Position, Quarantined, Store

_LOG: Final = logging.getLogger(__name__)


class SourceRecord(NamedTuple):
    """One record as it came; `value` is None where a source allows a record without one."""

    partition: int
    offset: int
    value: bytes | None


class DeadLetter(NamedTuple):
    """A record that is put aside, and why."""

    record: SourceRecord
    reason: str


class Progress(Enum):
    """What a look at the records under way found."""

    GOING = "everything so far is stored, or still on its way"
    REREAD = "a record was not stored: read again from the stored positions"


class _UnderWay(NamedTuple):
    """A record that the store has and has not answered yet."""

    done: Future[Any]
    partition: int
    offset: int


class Intake:
    """One source's way into the store. What the store refuses for good is put aside when it comes by again."""

    def __init__(
        self, store: Store, source: str, *, limits: Limits, clock: Clock, put_aside: Callable[[DeadLetter], None]
    ) -> None:
        self._store = store
        self._source = source
        self._limits = limits
        self._clock = clock
        self._put_aside = put_aside
        self._under_way: deque[_UnderWay] = deque()
        self._reached: dict[int, int] = {}
        self._expired: dict[int, int] = {}
        self._refused: dict[tuple[int, int], str] = {}

    def begin(self) -> Mapping[int, int]:
        """Start from what is stored: the next offset of each partition that was ever read. Nothing may be under way."""
        stored = self._store.positions()
        self._reached = {place.partition: at.next_offset for place, at in stored.items() if place.source == self._source}
        self._expired = {}
        return dict(self._reached)

    def expired(self, partition: int, count: int) -> None:
        """Say that so many records before the next one of a partition were taken by the source's retention."""
        self._expired[partition] = count

    def submit(self, record: SourceRecord) -> None:
        """Hand a record to the store: milliseconds for a full batch. A return does not mean that it is stored.

        Raises:
            StoreFull: come again with the same record.
            StoreClosed: the store takes no more.
        """
        refused = self._refused.get((record.partition, record.offset))
        if refused is not None:
            self._quarantine(record, refused)
        elif record.value is None:
            self._quarantine(record, "a record without a value")
        else:
            self._store_or_quarantine(record, record.value)

    def poll(self) -> Progress:
        """See what became of the records under way, oldest first. Never blocks.

        Raises:
            StoreError: the store could not do it, for a reason that is not the record's.
        """
        while self._under_way and self._under_way[0].done.done():
            one = self._under_way.popleft()
            error = one.done.exception()
            if isinstance(error, BatchInvalid):
                self._refused[one.partition, one.offset] = error.trouble.what
            if isinstance(error, BatchInvalid | PositionMoved):
                return Progress.REREAD
            if error is not None:
                raise error
            self._refused.pop((one.partition, one.offset), None)
        return Progress.GOING

    def join(self, timeout_s: float) -> None:
        """Wait until the store has answered for every record under way, and take what it said of refused ones.

        Raises:
            StoreError: it did not answer in time.
        """
        waiting = wait([one.done for one in self._under_way], timeout_s).not_done
        if waiting:
            do = "see whether the disk is full or slow; the source tries again"
            raise StoreError(f"{len(waiting)} batches are not stored after {timeout_s} s", where=self._source, do=do)
        for one in self._under_way:
            error = one.done.exception()
            if isinstance(error, BatchInvalid):
                self._refused[one.partition, one.offset] = error.trouble.what
        self._under_way.clear()

    def _store_or_quarantine(self, record: SourceRecord, value: bytes) -> None:
        """Decode a record and hand it on."""
        try:
            incoming = decode(value, self._clock.wall_ns(), self._limits)
        except BatchInvalid as error:
            self._quarantine(record, error.trouble.what)
            return
        self._follow(record, self._store.submit(incoming, self._step(record)))

    def _quarantine(self, record: SourceRecord, reason: str) -> None:
        """Put a record aside: into the table, with its position; and to whoever else wants to know, once the table has it."""
        body = record.value or b""
        engine = engine_of(body, self._limits) if body else None
        item = Quarantined(
            self._clock.wall_ns(), reason, engine, len(body), body, self._source, record.partition, record.offset
        )
        self._follow(record, self._store.quarantine(item, self._step(record)))
        _LOG.warning("%s[%d] offset %d: put aside: %s", self._source, record.partition, record.offset, reason)
        self._put_aside(DeadLetter(record, reason))

    def _step(self, record: SourceRecord) -> Position:
        """The position that is stored with a record."""
        place = Place(self._source, record.partition)
        expired = self._expired.get(record.partition, 0)
        return Position(place, self._reached.get(record.partition, 0), record.offset + 1, expired)

    def _follow(self, record: SourceRecord, done: Future[Any]) -> None:
        """Remember a record that the store has taken."""
        self._under_way.append(_UnderWay(done, record.partition, record.offset))
        self._reached[record.partition] = record.offset + 1
        self._expired.pop(record.partition, None)
