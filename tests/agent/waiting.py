"""Waiting for what other threads and processes do: bounded, and loud when it does not come."""

import time
from collections.abc import Callable

PATIENCE_S = 40.0


def wait_for(condition: Callable[[], object], what: str, timeout_s: float = PATIENCE_S) -> None:
    """Return once a condition holds.

    Raises:
        AssertionError: it does not within the time; the message says what was waited for.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {timeout_s} s"
        time.sleep(0.01)
