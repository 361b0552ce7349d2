"""Moves between nvme and the faster tiers: records in batches, the gpu through a bounce buffer."""

from kvtrail_schema.enums import Tier

from kvtrail_engine.clock import Clock, Stopwatch
from kvtrail_engine.runtime.arena import Arena
from kvtrail_engine.runtime.copies import CopyStream
from kvtrail_engine.tiers.floor import Floor
from kvtrail_engine.tiers.keeping import WallTerms
from kvtrail_engine.tiers.segments import Get, Put, SegmentStore
from kvtrail_engine.tiers.transfer import Transfer
from kvtrail_engine.tiers.workers import outcome_of


class NvmeMover:
    """Runs on one thread of the nvme tier and owns the buffers of that thread, so that none waits for another's.

    nvme → gpu: alloc (the thread's buffer), submit, io (read, verify, floor), copy (into the gpu's arena), sync.
    nvme → host and host → nvme: io alone, straight to or from the host's arena.
    """

    def __init__(
        self,
        *,
        gpu: Arena,
        host: Arena,
        bounce: Arena,
        store: SegmentStore,
        terms: WallTerms,
        stream: CopyStream,
        floor: Floor,
        clock: Clock,
    ) -> None:
        self._gpu = gpu
        self._host = host
        self._bounce = bounce
        self._store = store
        self._frames = store.frames(len(bounce.data))
        self._terms = terms
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
            self._floor.hold_until_ns(deadline_ns, transfer.stop)
            transfer.check()
        finally:
            transfer.parts.io_ns = watch.lap()
        if transfer.dst is Tier.GPU:
            self._copy(transfer, watch)

    def _write(self, transfer: Transfer) -> None:
        """Records straight from the host's arena."""
        puts = [
            Put(row.target.slot, row.block, self._host.buffer(row.source.slot), self._terms.keeping_of(row.target.terms))
            for row in transfer.rows
        ]
        self._store.write(puts, self._frames)

    def _read(self, transfer: Transfer, into: Arena, watch: Stopwatch) -> None:
        """Records into the thread's buffer, in order, or straight into the host's arena; one bad block fails the op."""
        places = range(len(transfer.rows)) if into is self._bounce else [row.target.slot for row in transfer.rows]
        buffers = [into.buffer(place) for place in places]
        transfer.parts.alloc_ns = watch.lap()
        gets = [Get(row.source.slot, row.block, buffer) for row, buffer in zip(transfer.rows, buffers, strict=True)]
        transfer.parts.submit_ns = watch.lap()
        faults = self._store.read(gets, self._frames, transfer.check)
        transfer.faults = {block: outcome_of(fault) for block, fault in faults.items()}
        for fault in faults.values():
            raise fault

    def _copy(self, transfer: Transfer, watch: Stopwatch) -> None:
        """From the buffer into the gpu's arena."""
        pairs = [(self._gpu.data[row.target.slot], self._bounce.data[at]) for at, row in enumerate(transfer.rows)]
        try:
            self._stream.start(pairs)
            self._stream.finish(transfer.check)
        finally:
            transfer.parts.copy_ns = watch.lap()
