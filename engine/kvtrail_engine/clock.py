"""The one clock that an engine reads and sleeps by; passed in, so that tests own time."""

import time
from typing import Protocol


class Clock(Protocol):
    """**Protocol:** a monotonic clock in nanoseconds."""

    def now_ns(self) -> int:
        """The present moment; never goes backwards."""
        ...

    def sleep_until_ns(self, deadline_ns: int) -> None:
        """Return at or after `deadline_ns`; at once if that has passed."""
        ...


class SystemClock:
    """The monotonic clock of the process, the same that the recorder reads."""

    now_ns = staticmethod(time.monotonic_ns)

    def sleep_until_ns(self, deadline_ns: int) -> None:
        """Sleeps without holding the interpreter."""
        while (left_ns := deadline_ns - time.monotonic_ns()) > 0:
            time.sleep(left_ns / 1e9)


class Stopwatch:
    """Cuts a stretch of time into laps that add up to the whole, exactly."""

    __slots__ = ("_clock", "last_ns")

    def __init__(self, clock: Clock, start_ns: int) -> None:
        self._clock = clock
        self.last_ns = start_ns

    def lap(self) -> int:
        """Nanoseconds since the last lap ended; the next one starts here."""
        now_ns = self._clock.now_ns()
        length_ns = now_ns - self.last_ns
        self.last_ns = now_ns
        return length_ns
