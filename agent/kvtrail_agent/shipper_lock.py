"""What makes a shipper the only one of its ring, and what lies beside a ring."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def only_shipper(ring: Path) -> Iterator[bool]:
    """Hold the lock that makes this the one shipper of a ring; yields whether it was free."""
    lock = os.open(lock_path(ring), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(lock)


def lock_path(ring: Path) -> Path:
    """The file whose lock the one shipper of a ring holds."""
    return ring.with_suffix(".lock")


def remove_ring(ring: Path) -> None:
    """Delete a ring that is settled whole, and the files beside it."""
    for path in (ring, ring.with_suffix(".json"), lock_path(ring)):
        path.unlink(missing_ok=True)
