"""A ring's file: made by the writer, opened by the reader, locked by whoever is alive.

The writer holds an exclusive `flock` for as long as it lives; the kernel lets go of it even after `kill -9`, so the
reader can ask whether the writer is dead without trusting process ids.
"""

import fcntl
import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtrail_schema.identity import Epoch, Rank, Stream

from kvtrail_agent import ring_layout as layout
from kvtrail_agent.errors import RingError

RING_SUFFIX: Final = ".ring"
_LARGEST_SLOT_COUNT: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class RingFile:
    """An open ring: its memory, and what its header says about its writer."""

    path: Path
    lock: int  # a descriptor of its own, so that no copy of the mapping shares the lock
    memory: mmap.mmap
    words: memoryview  # the header as u64: an item is read and stored whole, where `struct` would zero it first
    stream: Stream
    slot_count: int
    text_bytes: int

    @property
    def texts_offset(self) -> int:
        """Where the text area begins."""
        return layout.SLOTS_OFFSET + self.slot_count * layout.RECORD_BYTES

    def word(self, offset: int) -> int:
        """Read one shared word of the header."""
        return int(self.words[offset // layout.WORD_BYTES])

    def set_word(self, offset: int, value: int) -> None:
        """Write one shared word of the header; the caller is the one side that owns it."""
        self.words[offset // layout.WORD_BYTES] = value

    def writer_is_dead(self) -> bool:
        """Whether nobody holds the writer's lock. Asked by the reader; a system call."""
        try:
            fcntl.flock(self.lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(self.lock, fcntl.LOCK_UN)
        return True

    def close(self) -> None:
        """Let go of the lock. The memory itself goes when the last view of it does."""
        os.close(self.lock)


def create_ring(path: Path, stream: Stream, slot_count: int, text_bytes: int) -> RingFile:
    """Make a ring's file, readable by its owner alone, every page of it reserved, and lock it as its writer.

    Runs once at start. Reserving now means that a full file system is an error here and never a fault in the engine.

    Raises:
        RingError: the sizes are impossible, the file exists, or there is no room.
    """
    _check_sizes(stream, slot_count, text_bytes)
    size = layout.SLOTS_OFFSET + slot_count * layout.RECORD_BYTES + text_bytes
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        memory = _reserve(path, descriptor, size)
    except OSError as error:
        message = f"cannot make the ring {path} of {size} bytes: {error.strerror}; set ring_dir or slot_count"
        raise RingError(message) from error
    layout.IDENTITY.pack_into(
        memory,
        0,
        layout.MAGIC,
        layout.LAYOUT_VERSION,
        slot_count,
        text_bytes,
        stream.epoch,
        stream.rank,
        os.getpid(),
        stream.engine.encode(),
    )
    return RingFile(path, descriptor, memory, _words(memory), stream, slot_count, text_bytes)


def _reserve(path: Path, descriptor: int, size: int) -> mmap.mmap:
    """Give a new file its size, lock it, map it; leave nothing behind if that fails.

    Raises:
        OSError: there is no room.
    """
    try:
        os.posix_fallocate(descriptor, 0, size)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return _map(path, mmap.MAP_POPULATE)
    except OSError:
        os.close(descriptor)
        path.unlink()
        raise


def open_ring(path: Path) -> RingFile:
    """Open a ring as its reader.

    Raises:
        RingError: there is no such file, or it is no ring of this layout.
    """
    try:
        memory = _map(path, 0)
        stream, slot_count, text_bytes = _identity(path, memory)
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        message = f"cannot open the ring {path}: {error}"
        raise RingError(message) from error
    return RingFile(path, descriptor, memory, _words(memory), stream, slot_count, text_bytes)


def _identity(path: Path, memory: mmap.mmap) -> tuple[Stream, int, int]:
    """Whose ring it is, its slot count and the size of its text area.

    Raises:
        RingError: it is no ring of this layout.
    """
    if len(memory) >= layout.SLOTS_OFFSET:
        magic, version, slot_count, text_bytes, epoch, rank, _, engine = layout.IDENTITY.unpack_from(memory)
        expected = layout.SLOTS_OFFSET + slot_count * layout.RECORD_BYTES + text_bytes
        if magic == layout.MAGIC and version in layout.READABLE_VERSIONS and len(memory) == expected:
            return Stream(engine.rstrip(b"\0").decode(), Epoch(epoch), Rank(rank)), slot_count, text_bytes
    message = f"{path} is no ring of layout {layout.LAYOUT_VERSION} or older: it was written by another version, or is cut"
    raise RingError(message)


def _words(memory: mmap.mmap) -> memoryview:
    """The header and the table of drops as words that are stored whole."""
    return memoryview(memory)[: layout.SLOTS_OFFSET].cast("Q")


def _map(path: Path, flags: int) -> mmap.mmap:
    """Map the whole file through a descriptor that is closed again.

    The writer maps every page at once, so that the engine's thread never waits for the system to do so at its first touch.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return mmap.mmap(descriptor, 0, flags=mmap.MAP_SHARED | flags)
    finally:
        os.close(descriptor)


def _check_sizes(stream: Stream, slot_count: int, text_bytes: int) -> None:
    """Refuse what the layout cannot hold."""
    if slot_count & (slot_count - 1) or not 1 << 6 <= slot_count <= _LARGEST_SLOT_COUNT:
        message = f"slot_count is {slot_count}: use a power of two from {1 << 6} to {_LARGEST_SLOT_COUNT}"
        raise RingError(message)
    if text_bytes < 1 << 12 or text_bytes % 8:
        message = f"text_bytes is {text_bytes}: use a multiple of 8 of at least {1 << 12}"
        raise RingError(message)
    if not 1 <= len(stream.engine.encode()) <= 256:  # noqa: PLR2004 - the width of the header's field
        message = f"the engine's name {stream.engine!r} must take 1 to 256 bytes"
        raise RingError(message)
