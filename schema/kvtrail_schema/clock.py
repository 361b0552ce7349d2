"""Clocks that are passed in: durations come from the monotonic one, wall time only joins hosts."""

import time
from typing import Protocol

import msgspec


class Clocks(msgspec.Struct, frozen=True):
    """One reading of both clocks: joins hosts by wall time, measures nothing. The readings lie `error_ns` apart at most."""

    monotonic_ns: int
    wall_ns: int
    error_ns: int


class Clock(Protocol):
    """**Protocol:** where time comes from; below the place that builds things nobody asks the system."""

    def monotonic_ns(self) -> int:
        """Nanoseconds that only grow, from an arbitrary start."""
        ...

    def wall_ns(self) -> int:
        """Nanoseconds since 1970, which may step."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def monotonic_ns(self) -> int:
        """`CLOCK_MONOTONIC`, shared by all processes of a host."""
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        """`CLOCK_REALTIME`."""
        return time.time_ns()


class ManualClock:
    """A clock that moves when told to: for tests."""

    def __init__(self, monotonic_ns: int = 0, wall_ns: int = 0) -> None:
        self._monotonic_ns = monotonic_ns
        self._wall_ns = wall_ns

    def monotonic_ns(self) -> int:
        """The set time."""
        return self._monotonic_ns

    def wall_ns(self) -> int:
        """The set wall time."""
        return self._wall_ns

    def advance(self, by_ns: int) -> None:
        """Let time pass on both clocks."""
        self._monotonic_ns += by_ns
        self._wall_ns += by_ns

    def step_wall(self, by_ns: int) -> None:
        """Step the wall clock alone, as an administrator or NTP would."""
        self._wall_ns += by_ns


def read_clocks(clock: Clock) -> Clocks:
    """One joint reading of both clocks: the wall clock between two readings of the monotonic one."""
    before = clock.monotonic_ns()
    wall = clock.wall_ns()
    after = clock.monotonic_ns()
    return Clocks(monotonic_ns=(before + after) // 2, wall_ns=wall, error_ns=after - before)
