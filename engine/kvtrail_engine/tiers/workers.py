"""The threads of one tier: each takes an op, moves it, and says when it began and how it ended."""

import threading
from collections.abc import Sequence
from typing import Protocol

from kvtrail_engine.clock import Clock
from kvtrail_engine.errors import (
    ChecksumError,
    NoSpaceError,
    RecordExpiredError,
    RecordForeignError,
    RecordMissingError,
    RecordVersionError,
    RemoteLostError,
    RemoteTimeoutError,
    TransferCancelledError,
    TransferError,
)
from kvtrail_engine.runtime.device import map_device_errors
from kvtrail_engine.tiers.queue import TransferQueue
from kvtrail_engine.tiers.transfer import Transfer, TransferOutcome


class Mover(Protocol):
    """**Protocol:** moves the bytes of one op; one object a thread."""

    def move(self, transfer: Transfer) -> None:
        """Move every row and fill in `transfer.parts`, which begin at `transfer.started_ns`. May block.

        Raises:
            TransferError: the op could not be done; nothing of it may be read.
        """
        ...


class Reports(Protocol):
    """**Protocol:** hears from the workers; called on their threads, in this order for each op; must not block."""

    def started(self, transfer: Transfer) -> None:
        """The op went into service."""
        ...

    def ended(self, transfer: Transfer) -> None:
        """The op has ended, well or not; its worker will not touch it again."""
        ...


_OUTCOMES: tuple[tuple[type[TransferError], TransferOutcome], ...] = (
    (RecordForeignError, TransferOutcome.PERMISSION),
    (RecordVersionError, TransferOutcome.VERSION),
    (RecordExpiredError, TransferOutcome.EXPIRED),
    (ChecksumError, TransferOutcome.CHECKSUM),
    (RecordMissingError, TransferOutcome.MISSING),
    (TransferCancelledError, TransferOutcome.CANCELLED),
    (NoSpaceError, TransferOutcome.NO_SPACE),
    (RemoteTimeoutError, TransferOutcome.TIMEOUT),
    (RemoteLostError, TransferOutcome.LOST),
)
"""The most specific error first."""


def outcome_of(error: TransferError) -> TransferOutcome:
    """The outcome that an error stands for."""
    return next((outcome for kind, outcome in _OUTCOMES if isinstance(error, kind)), TransferOutcome.IO)


class Workers:
    """Owns a tier's threads, one a mover."""

    def __init__(self, name: str, queue: TransferQueue, movers: Sequence[Mover], reports: Reports, clock: Clock) -> None:
        self._queue = queue
        self._reports = reports
        self._clock = clock
        self._threads = [
            threading.Thread(target=self._serve, args=(mover,), name=f"kvtrail-{name}-{number}", daemon=True)
            for number, mover in enumerate(movers)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Serve what waits, then end. Blocks until the threads have ended."""
        self._queue.close()
        for thread in self._threads:
            thread.join()

    def _serve(self, mover: Mover) -> None:
        """One thread's life."""
        while (transfer := self._queue.take()) is not None:
            transfer.started_ns = self._clock.now_ns()
            self._reports.started(transfer)
            self._move(mover, transfer)
            self._queue.done()
            self._reports.ended(transfer)

    def _move(self, mover: Mover, transfer: Transfer) -> None:
        """Move, and turn what is raised into the op's outcome."""
        try:
            transfer.check()
            with map_device_errors():
                mover.move(transfer)
        except TransferError as error:
            transfer.outcome = outcome_of(error)
            transfer.detail = str(error)
        parts = transfer.parts
        spent_ns = parts.alloc_ns + parts.submit_ns + parts.io_ns + parts.copy_ns + parts.sync_ns
        transfer.ended_ns = transfer.started_ns + spent_ns
