"""When the device has finished a step, and how long it computed, without ever waiting for it."""

from typing import Protocol

import torch

from kvtrail_engine.clock import Clock
from kvtrail_engine.runtime.cuda import CudaEvent


class ComputeTimer(Protocol):
    """**Protocol:** brackets the compute of one step; used by the engine's thread only."""

    def begin(self) -> None:
        """Call before the first kernel of the step."""
        ...

    def end(self) -> None:
        """Call after the last kernel was submitted."""
        ...

    def is_done(self) -> bool:
        """Whether the device has finished; does not block."""
        ...

    def device_ns(self) -> int:
        """The time that the device computed; only after `is_done`."""
        ...


class CpuTimer:
    """On the CPU the engine's thread computes itself: it is done when `end` is called."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_ns = self._ended_ns = 0

    def begin(self) -> None:
        """Read the clock."""
        self._began_ns = self._clock.now_ns()

    def end(self) -> None:
        """Read the clock again."""
        self._ended_ns = self._clock.now_ns()

    def is_done(self) -> bool:
        """Always."""
        return True

    def device_ns(self) -> int:
        """The time between the readings."""
        return self._ended_ns - self._began_ns


class CudaTimer:
    """Two events on the compute stream, reused step after step."""

    def __init__(self) -> None:
        self._began = CudaEvent()
        self._ended = CudaEvent()

    def begin(self) -> None:
        """Record on the current stream."""
        self._began.record()

    def end(self) -> None:
        """Record on the current stream."""
        self._ended.record()

    def is_done(self) -> bool:
        """Ask the event."""
        return self._ended.is_done()

    def device_ns(self) -> int:
        """Device clock, read when both events are complete."""
        return self._began.elapsed_ns(self._ended)


def compute_timer(device: torch.device, clock: Clock) -> ComputeTimer:
    """The timer for this device."""
    return CudaTimer() if device.type == "cuda" else CpuTimer(clock)
