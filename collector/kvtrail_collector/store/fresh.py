"""What opening a store made that was not there before, so that a start that fails leaves nothing behind."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MEMORY: Final = ":memory:"
"""The path of a store that lives as long as its process."""

_LOG: Final = logging.getLogger(__name__)


class FreshFiles:
    """The file of a store, its log and its folders, as far as they were not there; `keep` once they may stay."""

    def __init__(self, path: str) -> None:
        own = Path(path).absolute()
        self._files = [] if path == MEMORY or own.exists() else [own, own.with_name(f"{own.name}.wal")]
        self._folders = [] if path == MEMORY else [folder for folder in own.parents if not folder.exists()]

    def make_folders(self) -> None:
        """Make the folders that are missing, for their owner alone, and say so: a wrong path is seen at once then."""
        for folder in reversed(self._folders):
            folder.mkdir(mode=0o700, exist_ok=True)
        if self._folders:
            _LOG.warning("made the folder %s, which was not there", self._folders[0])

    def keep(self) -> None:
        """What was made is used from now on."""
        self._files, self._folders = [], []

    def remove(self) -> None:
        """Remove what was made and is not kept. A folder in which something else lies stays."""
        for file in self._files:
            file.unlink(missing_ok=True)
        for folder in self._folders:
            with contextlib.suppress(OSError):
                folder.rmdir()


@contextmanager
def fresh_files(path: str) -> Iterator[FreshFiles]:
    """Remove at the end what was made in the block and not kept."""
    fresh = FreshFiles(path)
    try:
        yield fresh
    finally:
        fresh.remove()
