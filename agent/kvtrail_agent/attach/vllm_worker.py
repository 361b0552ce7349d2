"""What a worker of vLLM does for the KV cache in one step, by the clock: times alone, which travel to the scheduler.

Runs on the worker's thread, a clock reading a call. Workers record nothing themselves: their times go the way that vLLM has for
metadata from workers to the scheduler, whose process alone has a recorder. So a request and its loads stand in one stream,
whatever number of processes served them.
"""

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

ABSENT: Final = 0
"""A time that was not taken; the monotonic clock of a host that is up is larger."""


class StepTimes(NamedTuple):
    """One step of one worker; all on its monotonic clock, `wall_offset_ns` is its wall clock minus that.

    `load_*` is the call that starts loads, `layer_*` what layers waited for them in all and until when, `save_*` what saving
    took in all and until when, `asked_ns` when finished transfers were asked for.
    """

    worker: int
    wall_offset_ns: int
    load_begin_ns: int = ABSENT
    load_end_ns: int = ABSENT
    layer_wait_ns: int = 0
    layer_end_ns: int = ABSENT
    save_ns: int = 0
    save_end_ns: int = ABSENT
    asked_ns: int = ABSENT


class WorkerWatch:
    """Times the calls of one step; used by the worker's thread."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._reset()

    def _reset(self) -> None:
        """Nothing was called yet."""
        self._load_begin_ns = self._load_end_ns = self._layer_end_ns = self._save_end_ns = self._asked_ns = ABSENT
        self._layer_wait_ns = self._save_ns = 0

    def load(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The call that starts, or makes, the loads of a step."""
        begin_ns = time.monotonic_ns()
        try:
            return call(*args, **kwargs)
        finally:
            self._load_begin_ns, self._load_end_ns = begin_ns, time.monotonic_ns()

    def layer(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The wait of a layer for its load."""
        begin_ns = time.monotonic_ns()
        try:
            return call(*args, **kwargs)
        finally:
            self._layer_end_ns = time.monotonic_ns()
            self._layer_wait_ns += self._layer_end_ns - begin_ns

    def save(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A piece of saving."""
        begin_ns = time.monotonic_ns()
        try:
            return call(*args, **kwargs)
        finally:
            self._save_end_ns = time.monotonic_ns()
            self._save_ns += self._save_end_ns - begin_ns

    def asked(self) -> None:
        """Finished transfers were asked for."""
        self._asked_ns = time.monotonic_ns()

    def take(self) -> StepTimes:
        """The times of the step that ends; the next one begins."""
        times = StepTimes(
            self._worker,
            time.time_ns() - time.monotonic_ns(),
            self._load_begin_ns,
            self._load_end_ns,
            self._layer_wait_ns,
            self._layer_end_ns,
            self._save_ns,
            self._save_end_ns,
            self._asked_ns,
        )
        self._reset()
        return times


class TimesMeta:
    """Metadata of a worker with ours beside it; pickled between processes."""

    def __init__(self, inner: Any, times: tuple[StepTimes, ...]) -> None:
        self.inner = inner
        self.times = times

    def aggregate(self, other: Any) -> "TimesMeta":
        """The metadata of two workers as one, as vLLM asks for it before the scheduler sees it."""
        theirs, times = (other.inner, other.times) if isinstance(other, TimesMeta) else (other, ())
        if self.inner is None or theirs is None:
            both = self.inner if theirs is None else theirs
        else:
            both = self.inner.aggregate(theirs)
        return TimesMeta(both, (*self.times, *times))


_SAME_HOST_NS: Final = 50_000_000


def on_clock(times: StepTimes, wall_offset_ns: int) -> StepTimes:
    """The times on the clock of another process of which the wall clock minus the monotonic one is given.

    Processes of one host share the monotonic clock: what lies between them is how the readings were taken, and moves nothing.
    """
    moved_ns = times.wall_offset_ns - wall_offset_ns
    if abs(moved_ns) < _SAME_HOST_NS:
        return times
    fields = ("load_begin_ns", "load_end_ns", "layer_end_ns", "save_end_ns", "asked_ns")
    return times._replace(**{name: getattr(times, name) + moved_ns for name in fields if getattr(times, name) != ABSENT})
