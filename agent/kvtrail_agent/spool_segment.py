r"""One segment of a spool: a file of checksummed records, written once from front to back.

```
"KVTSPL1\0" | length u32 | CRC-32 of length and frame u32 | frame | length …
```

What a kill or a full disk cut off at the end is no record: its frame was never taken out of the ring.
"""

import os
import struct
import zlib
from pathlib import Path
from typing import Final

from kvtrail_schema.header import DEFAULT_LIMITS

MAGIC: Final = b"KVTSPL1\0"
SEGMENT_SUFFIX: Final = ".segment"
FIRST_OFFSET: Final = len(MAGIC)
_RECORD: Final = struct.Struct("<II")
_LENGTH: Final = struct.Struct("<I")


def record_bytes(frame: bytes) -> int:
    """What a frame takes in a segment."""
    return _RECORD.size + len(frame)


class SegmentWriter:
    """The open end of a spool. Every error of the system is the caller's to judge; a record is there whole or not at all."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        self.size = 0
        try:
            self._write(MAGIC)
        except OSError:
            os.close(self._descriptor)
            path.unlink(missing_ok=True)
            raise

    def append(self, frame: bytes) -> int:
        """Write a record; the offset behind it.

        Raises:
            OSError: no room; the segment is as it was before.
        """
        length = _LENGTH.pack(len(frame))
        checksum = zlib.crc32(frame, zlib.crc32(length))
        self._write(_RECORD.pack(len(frame), checksum) + frame)
        return self.size

    def _write(self, data: bytes) -> None:
        """Write all of it or nothing."""
        view, done = memoryview(data), 0
        try:
            while done < len(data):
                done += os.pwrite(self._descriptor, view[done:], self.size + done)
        except OSError:
            os.ftruncate(self._descriptor, self.size)
            raise
        self.size += done

    def close(self, *, sync: bool) -> None:
        """Let go of the file; with `sync` it is on the disk then, as far as the disk tells the truth."""
        try:
            if sync:
                os.fdatasync(self._descriptor)
        finally:
            os.close(self._descriptor)


def read_records(path: Path, offset: int, most_records: int, most_bytes: int) -> list[bytes]:
    """The frames from an offset on, up to a number and (after the first) up to a size; ends at what is cut or damaged."""
    frames: list[bytes] = []
    try:
        with path.open("rb") as segment:
            if segment.read(len(MAGIC)) != MAGIC:
                return []
            segment.seek(max(offset, len(MAGIC)))
            while len(frames) < most_records and most_bytes > 0:
                head = segment.read(_RECORD.size)
                frame = segment.read(_length(head))
                if not _is_whole(head, frame):
                    break
                frames.append(frame)
                most_bytes -= len(frame)
    except FileNotFoundError:
        return []
    return frames


def _length(head: bytes) -> int:
    """How long the frame of a record says it is, within the bound of a frame; 0 where there is none."""
    if len(head) < _RECORD.size:
        return 0
    length: int = _RECORD.unpack(head)[0]
    return min(length, DEFAULT_LIMITS.frame_bytes)


def _is_whole(head: bytes, frame: bytes) -> bool:
    """Whether a record is there to its end, unchanged."""
    if len(head) < _RECORD.size or not frame:
        return False
    length, checksum = _RECORD.unpack(head)
    return bool(length == len(frame) and checksum == zlib.crc32(frame, zlib.crc32(head[: _LENGTH.size])))
