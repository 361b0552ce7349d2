"""The bounded queue of one tier: ops in the order in which they came, reads and writes together."""

import threading
from collections import deque
from typing import NamedTuple

from kvtrail_engine.tiers.transfer import Transfer


class QueueStatistics(NamedTuple):
    """A queue at one moment."""

    capacity: int
    """The most ops that may wait."""
    waiting: int
    """Ops that wait."""
    in_service: int
    """Ops that a worker has."""
    offered: int
    """Ops taken in since the start."""
    refused: int
    """Ops refused because the queue was full."""


class TransferQueue:
    """Between the engine's thread, which offers and never blocks, and a tier's workers, which wait for work."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._condition = threading.Condition()
        self._waiting: deque[Transfer] = deque()  # guarded by _condition
        self._in_service = self._offered = self._refused = 0  # guarded by _condition
        self._is_closed = False  # guarded by _condition

    def offer_nowait(self, transfer: Transfer) -> bool:
        """Take an op in, noting the depth that it found; False, and nothing changed, where the queue is full or closed."""
        with self._condition:
            if self._is_closed or len(self._waiting) >= self._capacity:
                self._refused += 1
                return False
            transfer.depth = len(self._waiting)
            self._waiting.append(transfer)
            self._offered += 1
            self._condition.notify()
            return True

    def take(self) -> Transfer | None:
        """The next op, waiting for one; None once the queue is closed and empty. For workers only."""
        with self._condition:
            while not self._waiting and not self._is_closed:
                self._condition.wait()
            if not self._waiting:
                return None
            self._in_service += 1
            return self._waiting.popleft()

    def withdraw(self, transfer: Transfer) -> bool:
        """Take an op out that no worker has taken; False where one has. Costs a look at the queue."""
        with self._condition:
            if transfer not in self._waiting:
                return False
            self._waiting.remove(transfer)
            return True

    def done(self) -> None:
        """A worker has finished with the op that it took."""
        with self._condition:
            self._in_service -= 1

    def has_room(self, ops: int) -> bool:
        """Whether this many ops would be taken in now; only the engine's thread offers, so that it stays true for it."""
        with self._condition:
            return not self._is_closed and len(self._waiting) + ops <= self._capacity

    def close(self) -> None:
        """Take nothing more in; what waits is still served."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()

    def statistics(self) -> QueueStatistics:
        """The queue, now. From any thread."""
        with self._condition:
            return QueueStatistics(self._capacity, len(self._waiting), self._in_service, self._offered, self._refused)
