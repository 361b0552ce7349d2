"""Clocks that are passed in."""

import pytest
from kvtrail_schema.clock import Clock, Clocks, ManualClock, SystemClock, read_clocks


def test_system_clock_only_grows() -> None:
    """Durations from the monotonic clock are never negative."""
    clock: Clock = SystemClock()
    readings = [clock.monotonic_ns() for _ in range(1_000)]

    assert sorted(readings) == readings


def test_joint_reading_brackets_the_wall_clock() -> None:
    """The error of a calibration is the time that it took, and the reading lies in its middle."""
    clock = _Ticking()
    expected = Clocks(monotonic_ns=20, wall_ns=1_000, error_ns=20)

    assert expected == read_clocks(clock)


class _Ticking:
    """A clock on which 20 ns pass from one reading of the monotonic clock to the next."""

    def __init__(self) -> None:
        self._monotonic_ns = -10

    def monotonic_ns(self) -> int:
        """20 ns later than before."""
        self._monotonic_ns += 20
        return self._monotonic_ns

    def wall_ns(self) -> int:
        """Always the same."""
        return 1_000


def test_joint_reading_of_this_machine() -> None:
    """A real reading has a real error: not negative, and far below a second."""
    clocks = read_clocks(SystemClock())

    assert 0 <= clocks.error_ns < 1_000_000_000


@pytest.mark.parametrize("by_ns", [-5_000_000, 0, 5_000_000])
def test_step_of_the_wall_clock_leaves_durations_alone(by_ns: int) -> None:
    """An administrator who sets the time changes no duration."""
    clock = ManualClock(monotonic_ns=100, wall_ns=50)
    clock.advance(10)
    clock.step_wall(by_ns)

    assert clock.monotonic_ns() == 110
    assert clock.wall_ns() == 60 + by_ns
