"""Copies between arenas: a dedicated CUDA stream a thread, or the thread itself where there is no device."""

from collections.abc import Callable, Sequence

import torch

from kvtrail_engine.clock import Clock
from kvtrail_engine.runtime.cuda import CudaLane

POLL_NS = 20_000

Pair = tuple[torch.Tensor, torch.Tensor]


class CopyStream:
    """Belongs to one transfer thread. `start` submits, `finish` returns when the data is there; always in pairs.

    On CUDA `start` only launches and `finish` polls an event, so that no thread ever synchronises the device. On the
    CPU there is nobody else to do the copy, so that `finish` does it.
    """

    def __init__(self, device: torch.device, clock: Clock) -> None:
        self._clock = clock
        self._lane = CudaLane(device) if device.type == "cuda" else None
        self._pending: list[Pair] = []

    def start(self, pairs: Sequence[Pair]) -> None:
        """Submit copies of (destination, source)."""
        if self._lane is None:
            self._pending.extend(pairs)
        else:
            self._lane.submit(pairs)

    def finish(self, check: Callable[[], None]) -> None:
        """Return when every submitted copy is complete. On the CPU `check` is called before each and may end it by raising;
        what was launched on a device cannot be recalled, and takes microseconds.
        """
        if self._lane is None:
            self._finish_here(check)
            return
        while not self._lane.is_done():
            self._clock.sleep_until_ns(self._clock.now_ns() + POLL_NS)

    def _finish_here(self, check: Callable[[], None]) -> None:
        """Do the copies, one after the other."""
        pending, self._pending = self._pending, []
        for destination, source in pending:
            check()
            destination.copy_(source)
