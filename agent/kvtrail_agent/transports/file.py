"""Frames into a directory of segments, for hosts that have no network to a collector.

A segment is a row of `length u32 | frame`. A segment is complete when its name ends in `.segment`; the one that is
written now ends in `.open`. A frame is acknowledged when it is on the disk. What a crash cut off at the end of a
segment was never acknowledged, and is skipped when reading.
"""

import contextlib
import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from kvtrail_schema.errors import FrameTooLarge
from kvtrail_schema.header import DEFAULT_LIMITS, BatchHeader

from kvtrail_agent.errors import SettingsInvalid, TransportUnavailable
from kvtrail_agent.transports.files import TransportFiles

SEGMENT_BYTES: Final = 64 << 20
_LENGTH: Final = struct.Struct("<I")
_OPEN, _COMPLETE = ".open", ".segment"


class FileTransport:
    """Writes segments into one directory; one process a name, so that several may share the directory."""

    def __init__(self, directory: Path, *, name: str, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._directory = directory
        self._name = name
        self._segment_bytes = segment_bytes
        self._number = 0
        self._descriptor: int | None = None
        self._written = 0

    def send(self, frame: bytes, header: BatchHeader) -> None:
        """Append a frame to the open segment."""
        try:
            descriptor = self._segment()
            self._written += _write_all(descriptor, _LENGTH.pack(len(frame)) + frame)
        except OSError as error:
            self._abandon()
            message = f"{self._directory}: {error.strerror}"
            raise TransportUnavailable(message) from error

    def flush(self, timeout_s: float) -> None:
        """Bring the open segment to the disk; begin a new one when it is full."""
        if self._descriptor is None:
            return
        try:
            os.fsync(self._descriptor)
            _see_that_it_has_a_name(self._descriptor)
        except OSError as error:
            self._abandon()
            message = f"{self._directory}: {error.strerror}"
            raise TransportUnavailable(message) from error
        if self._written >= self._segment_bytes:
            self.close()

    def close(self) -> None:
        """Complete the open segment."""
        if self._descriptor is None:
            return
        self._abandon()
        path = self._path()
        # A directory that is gone or closed by now loses nothing: an open segment is read like a complete one.
        with contextlib.suppress(OSError):
            path.rename(path.with_suffix(_COMPLETE))

    def _path(self) -> Path:
        """The segment that is being written."""
        return self._directory / f"{self._name}-{self._number:06d}{_OPEN}"

    def _segment(self) -> int:
        """The open segment, made when there is none."""
        if self._descriptor is None:
            self._number += 1
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(self._path(), flags, 0o600)
        return self._descriptor

    def _abandon(self) -> None:
        """Leave a segment that cannot be written; what was flushed in it stays readable."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor, self._written = None, 0


def _write_all(descriptor: int, data: bytes) -> int:
    """Write everything, however small the pieces that the system takes."""
    view, done = memoryview(data), 0
    while done < len(data):
        done += os.write(descriptor, view[done:])
    return done


def _see_that_it_has_a_name(descriptor: int) -> None:
    """A file that somebody deleted takes writes as before, and nobody will ever read them.

    Raises:
        OSError: it has no name any more.
    """
    if os.fstat(descriptor).st_nlink == 0:
        raise OSError(errno.ENOENT, "the open segment was deleted")


def read_segments(directory: Path) -> Iterator[bytes]:
    """The frames of all segments of a directory, in the order of their names, a cut end skipped.

    Raises:
        FrameTooLarge: a length is over the bound of a frame: the segment is damaged, or is none.
    """
    for path in sorted(p for p in directory.iterdir() if p.suffix in {_OPEN, _COMPLETE}):
        with path.open("rb") as segment:
            while frame := _next_frame(segment.read(_LENGTH.size), path):
                body = segment.read(frame)
                if len(body) < frame:
                    break
                yield body


def _next_frame(raw: bytes, path: Path) -> int:
    """The length of the next frame, or 0 at the end."""
    if len(raw) < _LENGTH.size:
        return 0
    (size,) = _LENGTH.unpack(raw)
    if size > DEFAULT_LIMITS.frame_bytes:
        message = f"{path} says a frame of {size} bytes, over the limit of {DEFAULT_LIMITS.frame_bytes}: it is damaged"
        raise FrameTooLarge(message)
    return int(size)


def open(url: str, files: TransportFiles) -> FileTransport:  # noqa: A001, ARG001 - the form that every transport's module has
    """A transport into the directory of a `file:///…` address, which is made if it is not there."""
    directory = Path(unquote(urlsplit(url).path))
    if not directory.is_absolute():
        message = f"transport {url!r}: give an absolute directory, as in file:///var/lib/kvtrail"
        raise SettingsInvalid(message)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        message = f"transport {url!r}: {error.strerror}"
        raise SettingsInvalid(message) from error
    return FileTransport(directory, name=f"{os.getpid()}-{os.urandom(4).hex()}")
