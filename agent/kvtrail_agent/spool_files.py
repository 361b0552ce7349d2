"""The directory of one spool: who uses it, whose frames it holds, what it takes on the disk."""

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final

from kvtrail_agent.spool_segment import SEGMENT_SUFFIX

LOCK_NAME: Final = "lock"
RING_NAME: Final = "ring"


def claim(directory: Path) -> int | None:
    """Become the one user of a directory; the lock to hold, None where another has it or the directory is going away.

    Raises:
        OSError: the system does not let us.
    """
    lock = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    if os.fstat(lock).st_nlink == 0:  # tidied away between our opening and locking it
        os.close(lock)
        return None
    return lock


def mark(directory: Path, ring: Path) -> None:
    """Say whose frames a directory holds: without it nobody would know, after a crash of the host, that the ring is lost.

    Raises:
        OSError: the disk does not take it.
    """
    descriptor = os.open(directory / RING_NAME, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, str(ring).encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def ring_of(directory: Path) -> Path | None:
    """The ring whose frames a spool's directory holds; None where nothing says so."""
    try:
        text = (directory / RING_NAME).read_text(encoding="utf-8")
    except OSError:
        return None
    return Path(text) if text else None


def remove_empty(directory: Path) -> None:
    """Take a directory without segments away; one that cannot be stays."""
    with contextlib.suppress(OSError):
        for name in (RING_NAME, LOCK_NAME):
            (directory / name).unlink(missing_ok=True)
        directory.rmdir()


def sync_names(directory: Path) -> None:
    """Bring the names of files to the disk too: one without a name is read by nobody.

    Raises:
        OSError: the disk does not take it.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def bytes_in(directory: Path) -> int:
    """The size of all segments in a directory."""
    try:
        with os.scandir(directory) as entries:
            return sum(size_of(entry) for entry in entries if entry.name.endswith(SEGMENT_SUFFIX))
    except OSError:
        return 0


def size_of(file: "os.DirEntry[str] | Path") -> int:
    """The size of a file; 0 once it is gone."""
    try:
        return file.stat().st_size
    except OSError:
        return 0
