"""The thread that erases what an invalidation could not: a tier was away, or somebody still read when its time was up."""

import threading

from kvtrail_engine.errors import EngineFailedError
from kvtrail_engine.invalidation import Ask, Invalidator, erase_owed

LONGEST_PAUSE = 16


class Erasing:
    """Owns its thread. Nobody finds the copies meanwhile; it only sees to it that their bytes go too, and that this is told.

    It tries again after `retry_ns`, then after twice as long, up to sixteen times as long, until nothing is owed.
    """

    def __init__(self, invalidator: Invalidator, ask: Ask, retry_ns: int) -> None:
        self._invalidator = invalidator
        self._ask = ask
        self._retry_ns = retry_ns
        self._condition = threading.Condition()
        self._is_owed = self._is_hurried = self._is_over = False  # guarded by _condition
        self._thread = threading.Thread(target=self._run, name="kvtrail-erase", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def owe(self) -> None:
        """Something is left to be erased. Returns at once; from any thread."""
        with self._condition:
            self._is_owed = True
            self._condition.notify_all()

    def hurry(self) -> None:
        """A tier is back: try now, if anything is owed. Returns at once; from any thread."""
        with self._condition:
            self._is_hurried = self._is_owed
            self._condition.notify_all()

    def close(self) -> None:
        """End the thread. Blocks for an attempt on its way."""
        with self._condition:
            self._is_over = True
            self._condition.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        """The thread's life."""
        pause_ns = self._retry_ns
        while self._wait(pause_ns):
            pause_ns = self._retry_ns if self._attempt() else min(2 * pause_ns, LONGEST_PAUSE * self._retry_ns)

    def _wait(self, pause_ns: int) -> bool:
        """Until something is owed, and then for the pause unless it is hurried; False once it is over."""
        with self._condition:
            self._condition.wait_for(lambda: self._is_over or self._is_owed)
            self._condition.wait_for(lambda: self._is_over or self._is_hurried, pause_ns / 1e9)
            self._is_hurried = False
            return not self._is_over

    def _attempt(self) -> bool:
        """Erase what can be erased; whether nothing is owed any more."""
        with self._condition:
            self._is_owed = False  # what comes to be owed from here on sets it again
        try:
            erase_owed(self._invalidator, self._ask)
            is_done = self._ask(lambda: self._invalidator.owed) == 0
        except (TimeoutError, EngineFailedError):  # too busy to be asked, or at its end
            is_done = False
        if not is_done:
            self.owe()
        return is_done
