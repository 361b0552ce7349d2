"""Moves between the remote and the faster tiers: records over a socket, gpu and nvme through a bounce buffer."""

from collections.abc import Callable

from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId

from kvtrail_engine.clock import Clock, Stopwatch
from kvtrail_engine.errors import RemoteLostError, TransferError
from kvtrail_engine.runtime.arena import Arena
from kvtrail_engine.runtime.copies import CopyStream
from kvtrail_engine.tiers.breaker import Breaker
from kvtrail_engine.tiers.floor import Floor
from kvtrail_engine.tiers.keeping import WallTerms
from kvtrail_engine.tiers.remote_store import RemoteStore
from kvtrail_engine.tiers.segments import Get, Put
from kvtrail_engine.tiers.transfer import Row, Transfer
from kvtrail_engine.tiers.workers import outcome_of

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
        terms: WallTerms,
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
        self._terms = terms
        self._stream = stream
        self._floor = floor
        self._clock = clock

    def move(self, transfer: Transfer) -> None:
        """One op, by its direction."""
        watch, parts = Stopwatch(self._clock, transfer.started_ns), transfer.parts
        size_bytes = len(transfer.rows) * self._host.block_bytes
        deadline_ns = self._floor.deadline_ns(transfer.started_ns, size_bytes, write=transfer.is_write)
        try:
            payloads = self._payloads(transfer)
        finally:
            parts.alloc_ns = watch.lap()
        try:
            self._breaker.check()
        finally:
            parts.submit_ns = watch.lap()
        try:
            self._ask(transfer, payloads)
            self._floor.hold_until_ns(deadline_ns, transfer.stop)
            transfer.check()
        finally:
            parts.io_ns = watch.lap()
        if transfer.dst is Tier.GPU:
            self._copy(transfer, watch)

    def _payloads(self, transfer: Transfer) -> list[memoryview]:
        """The memory that each row comes from or goes to; what comes from nvme is in it already."""
        payloads = [self._payload(transfer, at, row) for at, row in enumerate(transfer.rows)]
        if transfer.src is Tier.NVME:
            for row, payload in zip(transfer.rows, payloads, strict=True):
                self._fetch(transfer, row, payload)
        return payloads

    def _payload(self, transfer: Transfer, at: int, row: Row) -> memoryview:
        """Straight to and from the host's arena, through the thread's buffer otherwise."""
        near = row.source if transfer.is_write else row.target
        return self._host.buffer(near.slot) if near.tier is Tier.HOST else self._bounce.buffer(at)

    def _fetch(self, transfer: Transfer, row: Row, payload: memoryview) -> None:
        """Read a row's source from nvme; the block that cannot be believed is named, and fails the op."""
        try:
            self._read_nvme(row, payload)
        except TransferError as fault:
            transfer.faults = {row.block.id: outcome_of(fault)}
            raise

    def _ask(self, transfer: Transfer, payloads: list[memoryview]) -> None:
        """Write or read, and let the breaker know whether the remote answered."""
        try:
            faults = self._write(transfer, payloads) if transfer.is_write else self._read(transfer, payloads)
        except RemoteLostError:
            self._breaker.failed()
            raise
        except TransferError:
            self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        transfer.faults = {block: outcome_of(fault) for block, fault in faults.items()}
        for fault in faults.values():
            raise fault

    def _write(self, transfer: Transfer, payloads: list[memoryview]) -> dict[BlockId, TransferError]:
        """All of an op's records, or none of them."""
        rows = zip(transfer.rows, payloads, strict=True)
        self._store.write([Put(r.target.slot, r.block, p, self._terms.keeping_of(r.target.terms)) for r, p in rows])
        return {}

    def _read(self, transfer: Transfer, payloads: list[memoryview]) -> dict[BlockId, TransferError]:
        """An op's records; those that are not to be believed."""
        return self._store.read([Get(r.source.slot, r.block, p) for r, p in zip(transfer.rows, payloads, strict=True)])

    def _copy(self, transfer: Transfer, watch: Stopwatch) -> None:
        """From the buffer into the gpu's arena."""
        pairs = [(self._gpu.data[row.target.slot], self._bounce.data[at]) for at, row in enumerate(transfer.rows)]
        try:
            self._stream.start(pairs)
            self._stream.finish(transfer.check)
        finally:
            transfer.parts.copy_ns = watch.lap()
