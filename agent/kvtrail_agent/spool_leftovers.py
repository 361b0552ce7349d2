"""Spools whose shipper is gone: found, locked and sent between the frames of a stream that is alive."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kvtrail_agent.delivery_sources import SpooledFrames
from kvtrail_agent.spool import Spool
from kvtrail_agent.spool_files import ring_of

_LOOK_INTERVAL_NS: Final = 10_000_000_000


def orphans(root: Path) -> Iterator[Path]:
    """The spools whose ring is gone, by name. One whose ring is there has, or will have, a shipper of its own."""
    with contextlib.suppress(OSError):
        for directory in sorted(root.iterdir()):
            ring = ring_of(directory)
            if ring is not None and not ring.exists():
                yield directory


def open_orphan(directory: Path) -> Spool | None:
    """Take over a spool without a ring; None if another process is at it, or it cannot be read."""
    spool = Spool(directory.parent, directory.name, ring_of(directory) or directory, 0)
    try:
        return spool if spool.adopt() and not spool.is_empty else None
    except OSError:
        return None


class Leftovers:
    """One left-behind spool after another. Used by a shipper's main thread."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._current: SpooledFrames | None = None
        self._look_ns = 0

    def current(self, now_ns: int) -> SpooledFrames | None:
        """The spool to send from; looks for a new one when the last is sent, every ten seconds when there was none."""
        if self._current is None or self._current.is_empty:
            self._current = None
            if now_ns >= self._look_ns:
                self._current = self._find()
                self._look_ns = 0 if self._current else now_ns + _LOOK_INTERVAL_NS
        return self._current

    def close(self) -> None:
        """Leave the one at hand to others."""
        if self._current is not None:
            self._current.spool.close()

    def _find(self) -> SpooledFrames | None:
        """The first that is free."""
        for directory in orphans(self._root):
            spool = open_orphan(directory)
            if spool is not None:
                return SpooledFrames(spool, orphaned=True)
        return None
