"""Moves between nvme and the faster tiers: files by plain reads and writes, the gpu through a bounce buffer."""

from kvtrail_schema.enums import Tier

from kvtrail_engine.clock import Clock, Stopwatch
from kvtrail_engine.runtime.arena import Arena
from kvtrail_engine.runtime.copies import CopyStream
from kvtrail_engine.tiers.floor import Floor
from kvtrail_engine.tiers.segments import SegmentStore
from kvtrail_engine.tiers.transfer import Transfer


class NvmeMover:
    """Runs on one thread of the nvme tier and owns the bounce buffer of that thread, so that none waits for another's.

    nvme → gpu: alloc (the thread's buffer), submit, io (read, verify, floor), copy (into the gpu's arena), sync.
    nvme → host and host → nvme: io alone, straight to or from the host's arena.
    """

    def __init__(
        self, *, gpu: Arena, host: Arena, bounce: Arena, store: SegmentStore, stream: CopyStream, floor: Floor, clock: Clock
    ) -> None:
        self._gpu = gpu
        self._host = host
        self._bounce = bounce
        self._store = store
        self._stream = stream
        self._floor = floor
        self._clock = clock

    def move(self, transfer: Transfer) -> None:
        """One op, by its direction."""
        watch = Stopwatch(self._clock, transfer.started_ns)
        size_bytes = len(transfer.rows) * self._host.block_bytes
        deadline_ns = self._floor.deadline_ns(transfer.started_ns, size_bytes, write=transfer.is_write)
        try:
            if transfer.is_write:
                self._write(transfer)
            else:
                self._read(transfer, self._bounce if transfer.dst is Tier.GPU else self._host, watch)
            self._floor.hold_until_ns(deadline_ns)
        finally:
            transfer.parts.io_ns = watch.lap()
        if transfer.dst is Tier.GPU:
            self._copy(transfer, watch)

    def _write(self, transfer: Transfer) -> None:
        """Records straight from the host's arena."""
        for row in transfer.rows:
            self._store.write(row.target.slot, row.block, self._host.buffer(row.source.slot))

    def _read(self, transfer: Transfer, into: Arena, watch: Stopwatch) -> None:
        """Records into the thread's buffer, in order, or straight into the host's arena."""
        places = range(len(transfer.rows)) if into is self._bounce else [row.target.slot for row in transfer.rows]
        buffers = [into.buffer(place) for place in places]
        transfer.parts.alloc_ns = watch.lap()
        reads = list(zip(transfer.rows, buffers, strict=True))
        transfer.parts.submit_ns = watch.lap()
        for row, buffer in reads:
            self._store.read(row.source.slot, row.block, buffer)

    def _copy(self, transfer: Transfer, watch: Stopwatch) -> None:
        """From the buffer into the gpu's arena."""
        pairs = [(self._gpu.data[row.target.slot], self._bounce.data[at]) for at, row in enumerate(transfer.rows)]
        self._stream.start(pairs)
        self._stream.finish()
        transfer.parts.copy_ns = watch.lap()
