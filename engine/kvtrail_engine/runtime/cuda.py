"""The CUDA objects that the engine uses, in the types that it uses them by.

torch ships no types for streams and events; this is the only file that has to know.
"""

from collections.abc import Sequence

import torch


class CudaEvent:
    """A mark on a stream: recorded once, then asked, never waited for."""

    def __init__(self) -> None:
        self._event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch has no types here

    def record(self, stream: torch.cuda.Stream | None = None) -> None:
        """Mark this point of a stream; of the current one where none is given."""
        self._event.record(torch.cuda.current_stream() if stream is None else stream)

    def is_done(self) -> bool:
        """Whether the device has passed the mark."""
        return bool(self._event.query())  # type: ignore[no-untyped-call]  # torch has no types here

    def elapsed_ns(self, later: "CudaEvent") -> int:
        """Device time from this mark to a later one; both must be done."""
        return int(self._event.elapsed_time(later._event) * 1e6)  # noqa: SLF001 - another object of this class


class CudaLane:
    """A stream of its own for copies, and the mark behind the last of them."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch has no types here
        self._event = CudaEvent()

    def submit(self, pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Launch copies of (destination, source) and mark their end."""
        with torch.cuda.stream(self._stream):
            for destination, source in pairs:
                destination.copy_(source, non_blocking=True)
        self._event.record(self._stream)

    def is_done(self) -> bool:
        """Whether all of them are complete."""
        return self._event.is_done()
