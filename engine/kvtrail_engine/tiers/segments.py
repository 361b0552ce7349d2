"""The files of the nvme tier: segments of fixed-size records, one slot a record, 0600.

The cache does not outlive its engine: segments of an earlier one are removed at the start, and its own at the end.
"""

import os
from pathlib import Path

from kvtrail_schema.identity import Slot

from kvtrail_engine.errors import StorageError, map_os_errors
from kvtrail_engine.tiers.pool import Block
from kvtrail_engine.tiers.record import HEADER_BYTES, check_record, pack_header

SEGMENT_SLOTS = 1024
PATTERN = "segment-*.kv"


def remove_segments(directory: Path) -> int:
    """Delete the segment files in a folder; their bytes. Files of other names are nobody's business."""
    removed_bytes = 0
    with map_os_errors():
        for path in directory.glob(PATTERN):
            removed_bytes += path.stat().st_size
            path.unlink()
    return removed_bytes


class SegmentStore:
    """Reads and writes records; any number of threads, each slot with one of them at a time (the pool sees to that)."""

    def __init__(self, directory: Path, slots: int, payload_bytes: int) -> None:
        self._directory = directory
        self._payload_bytes = payload_bytes
        self._record_bytes = HEADER_BYTES + payload_bytes
        self._files: list[int] = []
        with map_os_errors():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            for number in range(-(-slots // SEGMENT_SLOTS)):
                flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                self._files.append(os.open(directory / f"segment-{number:05d}.kv", flags, 0o600))

    def write(self, slot: Slot, block: Block, payload: memoryview) -> None:
        """Write one record. Blocks.

        Raises:
            StorageError: the operating system refused, or wrote less.
        """
        file, offset = self._place(slot)
        with map_os_errors():
            written = os.pwritev(file, [pack_header(block, payload), payload], offset)
        if written != self._record_bytes:
            message = f"slot {slot}: {written} of {self._record_bytes} bytes were written"
            raise StorageError(message)

    def read(self, slot: Slot, block: Block, into: memoryview) -> None:
        """Read one record into a buffer and believe it only if it is that block. Blocks.

        Raises:
            RecordMissingError, ChecksumError: it is not there, or is not that block as it was written.
            StorageError: the operating system refused.
        """
        file, offset = self._place(slot)
        header = bytearray(HEADER_BYTES)
        with map_os_errors():
            os.preadv(file, [header, into], offset)
        check_record(header, into, block)

    def free_bytes(self) -> int:
        """What the file system has left for this user."""
        with map_os_errors():
            state = os.statvfs(self._directory)
        return state.f_bavail * state.f_frsize

    def close(self) -> None:
        """Close and remove the files."""
        while self._files:
            os.close(self._files.pop())
        remove_segments(self._directory)

    def _place(self, slot: Slot) -> tuple[int, int]:
        """The file and the offset of a slot."""
        return self._files[slot // SEGMENT_SLOTS], slot % SEGMENT_SLOTS * self._record_bytes
