"""One thread's memory for the areas around payloads, aligned as direct I/O wants it."""

import mmap

from kvtrail_engine.tiers.geometry import Geometry


class Frames:
    """Headers, trailers and a staging area for so many records; used by one thread, made once."""

    def __init__(self, geometry: Geometry, records: int) -> None:
        self.records = records
        align, stored = geometry.align_bytes, geometry.stored_bytes
        self._memory = memoryview(mmap.mmap(-1, records * (2 * align + stored)))
        self.heads = [self._memory[at * align : (at + 1) * align] for at in range(records)]
        self.tails = [self._memory[at * align : (at + 1) * align] for at in range(records, 2 * records)]
        first = 2 * records * align
        self.stages = [self._memory[first + at * stored : first + (at + 1) * stored] for at in range(records)]
        """Where a payload stands that is not stored as it is: encrypted, or padded to the alignment."""
