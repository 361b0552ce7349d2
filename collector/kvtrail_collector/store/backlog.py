"""What the writer has taken and not yet committed, cut into groups of exactly as many rows as are wanted.

DuckDB keeps rows in groups of 122,880. Whole groups go straight to where they stay; all else goes through the log and is
written a second time, which costs two thirds of the speed. So a busy writer cuts the batch at the border, commits whole
groups, and keeps the rest of that batch for the next commit; its sender is told when all of it is on disk. Only rows of the
table of common columns are counted (see `hot.py`); the few others go along with their neighbours.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple

from kvtrail_collector.store.account import Incoming, Receipt
from kvtrail_collector.store.hot import Cut
from kvtrail_collector.store.inbox import Delivery
from kvtrail_collector.store.positions import Position

ROW_GROUP: Final = 122_880
"""The rows of one row group of DuckDB."""

_NOTHING: Final = Receipt(stored=0, duplicate=0)
_UNCUT: Final = Cut(0, 0)


@dataclass(slots=True, eq=False)
class Pending:
    """A delivery of which the rows before the cut `taken` are in a commit already, with what became of them."""

    delivery: Delivery
    taken: Cut = _UNCUT
    receipt: Receipt = _NOTHING

    @property
    def left(self) -> int:
        """Common rows that no commit has taken yet."""
        return self.delivery.common_rows - self.taken.common

    @property
    def is_told(self) -> bool:
        """Whether its sender was told how it ended: then what is left of it must not be stored."""
        return self.delivery.done.done()


class Share(NamedTuple):
    """The rows of one delivery that belong to one commit."""

    pending: Pending
    incoming: Incoming
    is_last: bool

    @property
    def position(self) -> Position | None:
        """Where the source stands after this share: nowhere new before the last row of a batch is stored."""
        return self.pending.delivery.position if self.is_last else None

    def settle(self, receipt: Receipt) -> None:
        """Say that this share is committed; with the last one the sender is told."""
        before = self.pending.receipt
        self.pending.receipt = Receipt(before.stored + receipt.stored, before.duplicate + receipt.duplicate)
        if self.is_last:
            self.pending.delivery.done.set_result(self.pending.receipt)


class Backlog:
    """Deliveries in order. Used by the writer's thread alone."""

    def __init__(self) -> None:
        self._waiting: deque[Pending] = deque()
        self.rows = 0
        """Common rows that wait."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, delivery: Delivery) -> None:
        """Put a delivery at the end, unless its sender has given up."""
        if delivery.done.set_running_or_notify_cancel():
            self._waiting.append(Pending(delivery))
            self.rows += delivery.common_rows

    def take(self, rows: int) -> list[Share]:
        """The first `rows` common rows, or all if there are fewer, as one group, with the others that stand among them."""
        group: list[Share] = []
        while self._waiting and (rows > 0 or self._waiting[0].left == 0):
            pending = self._waiting[0]
            size = min(rows, pending.left)
            group.append(_share(pending, size))
            rows -= size
            self.rows -= size
            if pending.left == 0:
                self._waiting.popleft()
        return group


def _share(pending: Pending, rows: int) -> Share:
    """The next common rows of a delivery and the others among them, which are taken with it."""
    received = pending.delivery.incoming
    batch, begin = received.batch, pending.taken.rows
    pending.taken = pending.delivery.spread.cut(pending.taken, rows)
    if pending.taken.rows - begin < batch.table.num_rows:
        batch = batch._replace(table=batch.table.slice(begin, pending.taken.rows - begin))
    return Share(pending, received._replace(batch=batch), is_last=pending.left == 0)
