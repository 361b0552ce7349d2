"""Copies between gpu and host: one hop, by the copy stream of the thread that does it."""

from kvtrail_schema.enums import Tier

from kvtrail_engine.clock import Clock, Stopwatch
from kvtrail_engine.runtime.arena import Arena
from kvtrail_engine.runtime.copies import CopyStream
from kvtrail_engine.tiers.floor import Floor
from kvtrail_engine.tiers.transfer import Transfer


class HostMover:
    """Runs on one thread of the host tier."""

    def __init__(self, gpu: Arena, host: Arena, stream: CopyStream, floor: Floor, clock: Clock) -> None:
        self._arenas = {Tier.GPU: gpu, Tier.HOST: host}
        self._stream = stream
        self._floor = floor
        self._clock = clock

    def move(self, transfer: Transfer) -> None:
        """Submit = launch, copy = until the data is there and the floor has passed; or until it is called off."""
        watch = Stopwatch(self._clock, transfer.started_ns)
        source, target = self._arenas[transfer.src].data, self._arenas[transfer.dst].data
        size_bytes = len(transfer.rows) * self._arenas[Tier.HOST].block_bytes
        deadline_ns = self._floor.deadline_ns(transfer.started_ns, size_bytes, write=transfer.is_write)
        self._stream.start([(target[to], source[at]) for at, to in transfer.slots])
        transfer.parts.submit_ns = watch.lap()
        try:
            self._stream.finish(transfer.check)
            self._floor.hold_until_ns(deadline_ns, transfer.stop)
            transfer.check()
        finally:
            transfer.parts.copy_ns = watch.lap()
