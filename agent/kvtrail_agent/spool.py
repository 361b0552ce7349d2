"""The spool: frames that cannot leave yet, in a log on disk, so that the ring is free again at once.

One directory a stream, `spool_dir/NAME/`: `lock` (its one user holds it), `ring` (whose it is), and segments of about a
megabyte, all 0600. Frames are read in the order in which they came; a segment is deleted once its last frame is
acknowledged, the directory with its last segment: while all is well there is nothing on the disk.

**What survives.** A kill of any process: what `append` returned for is in the system's page cache at least, and the ring
is released only then. A segment is brought to the disk (`fdatasync`) when it is full and when the spool is closed, so a
crash of the host costs the open segment at most, beside the ring, which lies in memory too.
"""

import contextlib
import os
from collections import deque
from pathlib import Path
from typing import Final, NamedTuple

from kvtrail_agent.spool_files import bytes_in, claim, mark, remove_empty, size_of, sync_names
from kvtrail_agent.spool_segment import FIRST_OFFSET, SEGMENT_SUFFIX, SegmentWriter, read_records, record_bytes

_LARGEST_SEGMENT_BYTES: Final = 1 << 20
_SMALLEST_SEGMENT_BYTES: Final = 1 << 12
_MOST_BYTES: Final = 4 << 20


class Position(NamedTuple):
    """A place in a spool: before the frame at an offset of a segment. Offset 0 is the beginning."""

    segment: int
    offset: int


class Glimpse(NamedTuple):
    """Frames at the front of a spool, and the place behind each; `end` lies behind all, and behind what was torn."""

    frames: tuple[bytes, ...]
    ends: tuple[Position, ...]
    end: Position


class SpoolStatistics(NamedTuple):
    """What a spool holds and has done."""

    used_bytes: int
    """In this spool's segments."""
    limit_bytes: int
    """For all spools of the directory together."""
    segments: int
    appended: int
    """Frames since it was opened."""
    refused: int
    """Frames for which there was no room, or that the system did not take."""


class Spool:
    """The log of one stream. One process at a time, one thread of it."""

    def __init__(self, root: Path, name: str, ring: Path, limit_bytes: int) -> None:
        self._root, self._directory, self._ring = root, root / name, ring
        self._limit_bytes = limit_bytes
        self._segment_bytes = min(_LARGEST_SEGMENT_BYTES, max(_SMALLEST_SEGMENT_BYTES, limit_bytes // 8))
        self._lock: int | None = None
        self._writer: SegmentWriter | None = None
        self._segments: deque[int] = deque()
        self._head = Position(0, 0)
        self._next_number = 1
        self._others_bytes = 0  # on the disk when the open segment was begun, itself left out
        self._appended = self._refused = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing is waiting here."""
        return not self._segments

    @property
    def directory(self) -> Path:
        """Where the segments lie."""
        return self._directory

    def adopt(self) -> bool:
        """Take over what an earlier process left here. Says whether nobody else is at it (nothing there is fine too).

        Raises:
            OSError: the directory cannot be read.
        """
        if not self._directory.is_dir():
            return True
        if not self._take_lock():
            return False
        numbers = sorted(int(path.stem) for path in self._directory.glob(f"*{SEGMENT_SUFFIX}"))
        self._segments = deque(numbers)
        self._next_number = (numbers or [0])[-1] + 1
        self._head = Position(numbers[0] if numbers else self._next_number, 0)
        if not numbers:
            self._tidy()
        return True

    def append(self, frame: bytes) -> Position | None:
        """Keep a frame behind all others; the place behind it, or None where there is no room for it. Never raises.

        When it returns a place, the frame outlives this process.
        """
        try:
            offset = self._writer_for(record_bytes(frame)).append(frame)
        except OSError:
            self._refused += 1
            return None
        self._appended += 1
        return Position(self._segments[-1], offset)

    def peek(self, most_frames: int, start: Position | None = None) -> Glimpse:
        """The frames at the front, or from a place on, up to a number and a few megabytes; they stay until `advance`."""
        position, frames, ends = start or self._head, list[bytes](), list[Position]()
        while len(frames) < most_frames and not self._is_at_end(position):
            found = read_records(self._path(position.segment), position.offset, most_frames - len(frames), _MOST_BYTES)
            for frame in found:
                position = Position(position.segment, self._behind(position, frame))
                ends.append(position)
            frames.extend(found)
            if frames:
                break
            if self._is_open(position.segment):
                # What was written by this process cannot be read: it is gone from the disk.
                self._close_writer()
            position = Position(self._after(position.segment), 0)
        return Glimpse(tuple(frames), tuple(ends), position)

    def advance(self, position: Position) -> None:
        """Everything before a place is acknowledged: delete the segments that lie before it."""
        self._head = position
        while self._segments and self._lies_before(self._segments[0], position):
            if self._is_open(self._segments[0]):
                self._close_writer()
            self._delete(self._segments.popleft())
        if not self._segments:
            self._head = Position(self._next_number, 0)
            self._tidy()

    def close(self) -> None:
        """Bring what is left to the disk and let go of it, for the next start."""
        self._close_writer()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def statistics(self) -> SpoolStatistics:
        """What it holds and has done; looks at the files."""
        used = bytes_in(self._directory)
        return SpoolStatistics(used, self._limit_bytes, len(self._segments), self._appended, self._refused)

    def _path(self, number: int) -> Path:
        """The file of a segment."""
        return self._directory / f"{number:010d}{SEGMENT_SUFFIX}"

    def _is_open(self, number: int) -> bool:
        """Whether frames are still appended to a segment."""
        return self._writer is not None and self._segments[-1] == number

    def _lies_before(self, number: int, position: Position) -> bool:
        """Whether a whole segment lies before a place."""
        if number != position.segment:
            return number < position.segment
        if self._writer is not None and self._is_open(number):
            return position.offset >= self._writer.size
        return position.offset >= size_of(self._path(number))

    def _is_at_end(self, position: Position) -> bool:
        """Whether no frame can be behind a place."""
        if not self._segments or position.segment > self._segments[-1]:
            return True
        writer = self._writer
        return writer is not None and position.segment == self._segments[-1] and position.offset >= writer.size

    def _behind(self, position: Position, frame: bytes) -> int:
        """The offset behind a frame that begins at a place."""
        return max(position.offset, FIRST_OFFSET) + record_bytes(frame)

    def _after(self, number: int) -> int:
        """The segment behind one, or the next number where it is the last."""
        return next((other for other in self._segments if other > number), self._next_number)

    def _writer_for(self, size: int) -> SegmentWriter:
        """The open segment, or a new one where there is none or it is full.

        Raises:
            OSError: there is no room within the bound, or on the disk.
        """
        if self._writer is not None and self._writer.size >= self._segment_bytes:
            self._close_writer()
        used = self._others_bytes + (self._writer.size if self._writer else 0)
        if self._writer is None or used + size > self._limit_bytes:
            self._measure()
            used = self._others_bytes + (self._writer.size if self._writer else 0)
        if used + size > self._limit_bytes:
            raise OSError(f"the spool of {self._limit_bytes} bytes is full")
        if self._writer is None:
            self._writer = self._new_segment()
        return self._writer

    def _measure(self) -> None:
        """Look what all spools of the directory take now: others come and go."""
        own = self._writer.size if self._writer else 0
        folders = [path for path in self._root.iterdir() if path.is_dir()] if self._root.is_dir() else []
        self._others_bytes = sum(bytes_in(folder) for folder in folders) - own

    def _new_segment(self) -> SegmentWriter:
        """Begin a segment, and with the first one the directory.

        Raises:
            OSError: the system does not let us.
        """
        if self._lock is None:
            self._make_directory()
        number = self._next_number
        writer = SegmentWriter(self._path(number))
        if not self._segments:
            self._head = Position(number, 0)
        self._segments.append(number)
        self._next_number += 1
        return writer

    def _make_directory(self) -> None:
        """Make the directory and say whose it is.

        Raises:
            OSError: the system does not let us, or another process is at it.
        """
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory.mkdir(mode=0o700, exist_ok=True)
        if not self._take_lock():
            raise OSError(f"{self._directory} is in use by another process")
        mark(self._directory, self._ring)

    def _take_lock(self) -> bool:
        """Become the one user of the directory; says whether it was free and is still there."""
        self._lock = claim(self._directory)
        return self._lock is not None

    def _close_writer(self) -> None:
        """End the open segment. A disk that cannot take it now says so when it is read."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(OSError):
                writer.close(sync=True)
                sync_names(self._directory)

    def _delete(self, number: int) -> None:
        """Take a segment away; one that is gone already is fine."""
        with contextlib.suppress(OSError):
            self._path(number).unlink()

    def _tidy(self) -> None:
        """Take the empty directory away."""
        self._close_writer()
        remove_empty(self._directory)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
