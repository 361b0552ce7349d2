"""Durations of work on a CUDA stream, by pairs of events that are polled and never waited for.

A host clock around a launch measures the launch. Here one event is recorded on the stream before the work and one after
it; when the second has passed, the device says what lay between them. torch is not imported: the engine hands in how an
event is made.

```python
timer = StreamTimer(lambda: torch.cuda.Event(enable_timing=True))
pair = timer.begin(stream)
...                                    # launch the copy
timer.end(pair, stream, lambda copy_ns: recorder.swap_in_loaded(op, src, dst, copy_ns=copy_ns))
...
timer.poll()                           # each step
```
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

_NS_PER_MS: Final = 1_000_000
_MOST_PENDING: Final = 4_096


class CudaEvent(Protocol):
    """**Protocol:** an event with timing, as `torch.cuda.Event(enable_timing=True)` is."""

    def record(self, stream: Any) -> None:
        """Put it on a stream. Does not wait."""
        ...

    def query(self) -> bool:
        """Whether the stream has passed it. Does not wait."""
        ...

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from this event to another one; both have passed."""
        ...


@dataclass(slots=True)
class Pair:
    """The events around one piece of work."""

    start: CudaEvent
    end: CudaEvent


class TimerStatistics(NamedTuple):
    """A timer at one moment."""

    pending: int
    pooled: int
    skipped: int
    """Pieces of work that were not timed because too many were pending: their durations are absent, not wrong."""


class StreamTimer:
    """Times work on streams. Used by one thread, the engine's; nothing in it waits, and its memory is bounded.

    Pieces of one stream pass in their order. Those of several streams are looked at in the order in which they ended, so one
    that is late holds up the news of others, not their durations: use a timer a stream where that matters.
    """

    def __init__(self, new_event: Callable[[], CudaEvent], *, most_pending: int = _MOST_PENDING) -> None:
        self._new_event = new_event
        self._most_pending = most_pending
        self._pool: list[Pair] = []
        self._pending: deque[tuple[Pair, Callable[[int], object]]] = deque()
        self._skipped = 0

    def statistics(self) -> TimerStatistics:
        """How much is under way."""
        return TimerStatistics(len(self._pending), len(self._pool), self._skipped)

    def begin(self, stream: Any) -> Pair | None:
        """Mark the start of some work on a stream. None when too much is pending: the work is then not timed."""
        if len(self._pending) >= self._most_pending:
            self._skipped += 1
            return None
        pair = self._pool.pop() if self._pool else Pair(self._new_event(), self._new_event())
        pair.start.record(stream)
        return pair

    def end(self, pair: Pair | None, stream: Any, then: Callable[[int], object]) -> None:
        """Mark the end. `then` is called with nanoseconds by a later `poll`; never for work that is not timed."""
        if pair is not None:
            pair.end.record(stream)
            self._pending.append((pair, then))

    def poll(self) -> int:
        """Hand out the durations of what has passed, in order; how many. One question to the driver a piece, and no wait."""
        done = 0
        while self._pending and self._pending[0][0].end.query():
            pair, then = self._pending.popleft()
            duration_ns = round(pair.start.elapsed_time(pair.end) * _NS_PER_MS)
            self._pool.append(pair)
            done += 1
            then(duration_ns)
        return done
