"""Moves between the remote and the faster tiers: records over a socket, gpu and nvme through a bounce buffer."""

from collections.abc import Callable

from kvtrail_schema.enums import Tier

from kvtrail_engine.clock import Clock, Stopwatch
from kvtrail_engine.errors import RemoteLostError, TransferError
from kvtrail_engine.runtime.arena import Arena
from kvtrail_engine.runtime.copies import CopyStream
from kvtrail_engine.tiers.breaker import Breaker
from kvtrail_engine.tiers.floor import Floor
from kvtrail_engine.tiers.remote_store import RemoteRecord, RemoteStore
from kvtrail_engine.tiers.transfer import Row, Transfer

ReadNvme = Callable[[Row, memoryview], None]
"""Reads the record of a row's source from nvme into memory, and believes it only if it is that block."""


class RemoteMover:
    """Runs on one thread of the remote tier and owns the bounce buffer of that thread.

    remote → gpu: alloc (the thread's buffer), submit (the breaker), io (ask, verify, floor), copy (into the gpu's arena).
    remote ↔ host: alloc, submit, io. nvme → remote: alloc (read into the buffer), submit, io.
    """

    def __init__(
        self,
        *,
        gpu: Arena,
        host: Arena,
        bounce: Arena,
        store: RemoteStore,
        breaker: Breaker,
        read_nvme: ReadNvme,
        stream: CopyStream,
        floor: Floor,
        clock: Clock,
    ) -> None:
        self._gpu = gpu
        self._host = host
        self._bounce = bounce
        self._store = store
        self._breaker = breaker
        self._read_nvme = read_nvme
        self._stream = stream
        self._floor = floor
        self._clock = clock

    def move(self, transfer: Transfer) -> None:
        """One op, by its direction."""
        watch, parts = Stopwatch(self._clock, transfer.started_ns), transfer.parts
        size_bytes = len(transfer.rows) * self._host.block_bytes
        deadline_ns = self._floor.deadline_ns(transfer.started_ns, size_bytes, write=transfer.is_write)
        try:
            records = self._records(transfer)
        finally:
            parts.alloc_ns = watch.lap()
        try:
            self._breaker.check()
        finally:
            parts.submit_ns = watch.lap()
        try:
            self._ask(records, is_write=transfer.is_write)
            self._floor.hold_until_ns(deadline_ns)
        finally:
            parts.io_ns = watch.lap()
        if transfer.dst is Tier.GPU:
            self._copy(transfer, watch)

    def _records(self, transfer: Transfer) -> list[RemoteRecord]:
        """The memory that each row comes from or goes to; what comes from nvme is in it already."""
        records = [self._record(transfer, at, row) for at, row in enumerate(transfer.rows)]
        if transfer.src is Tier.NVME:
            for row, record in zip(transfer.rows, records, strict=True):
                self._read_nvme(row, record.payload)
        return records

    def _record(self, transfer: Transfer, at: int, row: Row) -> RemoteRecord:
        """Straight to and from the host's arena, through the thread's buffer otherwise."""
        near, far = (row.source, row.target) if transfer.is_write else (row.target, row.source)
        payload = self._host.buffer(near.slot) if near.tier is Tier.HOST else self._bounce.buffer(at)
        return RemoteRecord(far.slot, row.block, payload)

    def _ask(self, records: list[RemoteRecord], *, is_write: bool) -> None:
        """Write or read, and let the breaker know whether the remote answered."""
        try:
            (self._store.write if is_write else self._store.read)(records)
        except RemoteLostError:
            self._breaker.failed()
            raise
        except TransferError:
            self._breaker.succeeded()
            raise
        self._breaker.succeeded()

    def _copy(self, transfer: Transfer, watch: Stopwatch) -> None:
        """From the buffer into the gpu's arena."""
        pairs = [(self._gpu.data[row.target.slot], self._bounce.data[at]) for at, row in enumerate(transfer.rows)]
        self._stream.start(pairs)
        self._stream.finish()
        transfer.parts.copy_ns = watch.lap()
