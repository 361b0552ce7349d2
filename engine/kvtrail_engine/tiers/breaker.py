"""The circuit breaker in front of the remote: after failures in a row nobody asks it any more, until a probe was answered."""

import threading
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from kvtrail_engine.errors import RemoteLostError

LONGEST_PAUSE = 16


class BreakerState(Enum):
    """Whether the remote is asked."""

    CLOSED = "closed"
    """It is."""
    OPEN = "open"
    """It is given up for now; a probe goes out from time to time."""


class BreakerStatistics(NamedTuple):
    """A breaker at one moment."""

    state: BreakerState
    failures: int
    """In a row, until now."""
    opened: int
    """How often it opened since the start."""
    refused: int
    """Ops that were turned away because it was open."""


class Breaker:
    """Any thread; its lock is held for a few instructions. It closes by `reset` alone, once a probe was answered."""

    def __init__(self, failures_to_open: int) -> None:
        self._failures_to_open = failures_to_open
        self._condition = threading.Condition()
        self._state = BreakerState.CLOSED  # guarded by _condition
        self._failures = self._opened = self._refused = 0  # guarded by _condition
        self._is_over = False  # guarded by _condition

    def check(self) -> None:
        """Pass, or turn the caller away at once.

        Raises:
            RemoteLostError: the breaker is open.
        """
        with self._condition:
            if self._state is BreakerState.OPEN:
                self._refused += 1
                message = "the remote is given up for now"
                raise RemoteLostError(message)

    def succeeded(self) -> None:
        """The remote answered."""
        with self._condition:
            self._failures = 0

    def failed(self) -> None:
        """The remote did not answer; the last of enough failures in a row opens the breaker."""
        with self._condition:
            self._failures += 1
            if self._failures >= self._failures_to_open:
                self._open()

    def trip(self) -> None:
        """Open it at once."""
        with self._condition:
            self._open()

    def reset(self) -> None:
        """Close it: the remote answers again."""
        with self._condition:
            self._state = BreakerState.CLOSED
            self._failures = 0

    def end(self) -> None:
        """Nobody will probe any more; whoever waits here is woken."""
        with self._condition:
            self._is_over = True
            self._condition.notify_all()

    def wait_until_open(self) -> bool:
        """Block until it opens; False once `end` was called."""
        with self._condition:
            self._condition.wait_for(lambda: self._is_over or self._state is BreakerState.OPEN)
            return not self._is_over

    def pause(self, timeout_ns: int) -> bool:
        """Block for so long; False, and sooner, once `end` was called."""
        with self._condition:
            self._condition.wait_for(lambda: self._is_over, timeout_ns / 1e9)
            return not self._is_over

    def statistics(self) -> BreakerStatistics:
        """The breaker, now. From any thread."""
        with self._condition:
            return BreakerStatistics(self._state, self._failures, self._opened, self._refused)

    def _open(self) -> None:
        """Under the lock."""
        if self._state is BreakerState.CLOSED:
            self._state = BreakerState.OPEN
            self._opened += 1
            self._condition.notify_all()


class Prober:
    """The thread that asks a lost remote whether it is back, ever more rarely, so that no op has to find out."""

    def __init__(
        self,
        breaker: Breaker,
        cooldown_ns: int,
        *,
        is_back: Callable[[], bool],
        on_lost: Callable[[], None],
        on_back: Callable[[], None],
    ) -> None:
        self._breaker = breaker
        self._cooldown_ns = cooldown_ns
        self._is_back = is_back
        self._on_lost = on_lost
        self._on_back = on_back
        self._thread = threading.Thread(target=self._run, name="kvtrail-remote-probe", daemon=True)

    def start(self) -> None:
        """Start the thread; `on_lost` and `on_back` are called on it, in turn."""
        self._thread.start()

    def close(self) -> None:
        """End it. Blocks for a probe on its way."""
        self._breaker.end()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        """The thread's life."""
        while self._breaker.wait_until_open():
            self._on_lost()
            pause_ns = self._cooldown_ns
            while self._breaker.pause(pause_ns):
                if self._is_back():
                    self._breaker.reset()
                    self._on_back()
                    break
                pause_ns = min(2 * pause_ns, LONGEST_PAUSE * self._cooldown_ns)
