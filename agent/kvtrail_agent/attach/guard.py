"""What stands between an engine and our own mistakes: every step of ours runs through it, and none of them raises.

An engine whose version we do not know has other fields than we look for. The step that meets one is counted and left out;
after many of them we stop looking at all. The engine does not notice either.
"""

import logging
from collections.abc import Callable
from typing import Final, ParamSpec

LOG: Final = logging.getLogger("kvtrail")
MOST_ERRORS: Final = 100
"""So many steps may fail before an attachment looks no more."""

Args = ParamSpec("Args")


class Guard:
    """Runs our steps on the engine's thread: 0.2 µs each, never raises. The first failure is logged whole, the last briefly."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.errors = 0
        """Steps that failed; read by whoever samples it."""

    @property
    def is_open(self) -> bool:
        """Whether steps are still run."""
        return self.errors < MOST_ERRORS

    def run(self, step: Callable[Args, object], *args: Args.args, **kwargs: Args.kwargs) -> None:
        """Run a step, or count that it failed."""
        if self.errors >= MOST_ERRORS:
            return
        try:
            step(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is ours and not the engine's
            self._count(error)

    def _count(self, error: Exception) -> None:
        """One more; said at the first and at the last."""
        self.errors += 1
        if self.errors == 1:
            LOG.warning("kvtrail: %s: a step failed and is left out; the engine goes on", self._name, exc_info=error)
        elif self.errors == MOST_ERRORS:
            LOG.warning("kvtrail: %s: %d steps failed, the last with %r; records no more", self._name, MOST_ERRORS, error)
