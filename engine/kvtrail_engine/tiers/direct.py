"""Whether a folder's file system lets reads and writes go around the page cache, found by trying."""

import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtrail_engine.nvme_settings import DirectIo

BUFFERED_ALIGN: Final = 512
_ALIGNS: Final = (512, 4096)


@dataclass(frozen=True, slots=True)
class IoMode:
    """How segment files are opened, and the alignment that follows from it."""

    flags: int
    align_bytes: int
    note: str
    """For the manifest: `on`, `off`, or why it is off though it was asked for."""


def choose_io(directory: Path, wanted: DirectIo) -> IoMode:
    """Direct I/O where it is wanted and works, with the least alignment that works; else through the page cache.

    Blocks for two small writes to a file without a name.
    """
    if wanted is DirectIo.OFF:
        return IoMode(0, BUFFERED_ALIGN, "off")
    try:
        file = os.open(directory, os.O_RDWR | os.O_TMPFILE | os.O_DIRECT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        return IoMode(0, BUFFERED_ALIGN, f"off: {exc.strerror}")
    try:
        return _least_alignment(file)
    finally:
        os.close(file)


def _least_alignment(file: int) -> IoMode:
    """The least alignment that a direct write and a direct read at an odd multiple of it accept."""
    memory = memoryview(mmap.mmap(-1, 3 * max(_ALIGNS)))
    reason = ""
    for align in _ALIGNS:
        part = memory[align : 2 * align]
        try:
            os.pwritev(file, [part], align)
            os.preadv(file, [part], align)
        except OSError as exc:
            reason = str(exc.strerror)
            continue
        return IoMode(os.O_DIRECT, align, "on")
    return IoMode(0, BUFFERED_ALIGN, f"off: {reason}")
