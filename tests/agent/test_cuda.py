"""Durations of streams: from the device's own events, in order, without a wait, bounded."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from kvtrail_agent.cuda import StreamTimer


@dataclass
class Stream:
    """A stream of a device whose clock the test moves."""

    now_ms: float = 0.0
    events: list["Event"] = field(default_factory=list)

    def pass_events(self, count: int) -> None:
        """Let the device come so many events further, each at the present time."""
        for event in [event for event in self.events if event.at_ms is None][:count]:
            event.at_ms = self.now_ms


class Event:
    """An event as torch has it; `query` is false until the stream has passed it."""

    made = 0

    def __init__(self) -> None:
        Event.made += 1
        self.at_ms: float | None = None

    def record(self, stream: Stream) -> None:
        """Put it on the stream, anew."""
        self.at_ms = None
        stream.events.append(self)

    def query(self) -> bool:
        """Whether the stream has passed it."""
        return self.at_ms is not None

    def elapsed_time(self, end_event: "Event") -> float:
        """Milliseconds between two that have passed."""
        assert self.at_ms is not None
        assert end_event.at_ms is not None
        return end_event.at_ms - self.at_ms


def timed(timer: StreamTimer, stream: Stream, found: list[int]) -> None:
    """Some work on a stream, timed."""
    timer.end(timer.begin(stream), stream, found.append)


def test_a_duration_is_what_lies_between_the_events() -> None:
    """In nanoseconds, handed out once the second event has passed, and not before."""
    stream, found = Stream(), list[int]()
    timer = StreamTimer(Event)
    timed(timer, stream, found)
    stream.pass_events(1)
    stream.now_ms = 2.5

    assert (0, []) == (timer.poll(), found)

    stream.pass_events(1)

    assert (1, [2_500_000]) == (timer.poll(), found)
    assert (0, [2_500_000]) == (timer.poll(), found)


def test_work_passes_in_its_order() -> None:
    """What is behind unfinished work is not asked for."""
    stream, found = Stream(), list[int]()
    timer = StreamTimer(Event)
    for _ in range(3):
        timed(timer, stream, found)
    for now_ms in (0.0, 1.0, 1.0, 3.0):
        stream.now_ms = now_ms
        stream.pass_events(1)

    assert (2, [1_000_000, 2_000_000]) == (timer.poll(), found)
    assert 1 == timer.statistics().pending


def test_events_are_used_again() -> None:
    """A long run makes as many events as are ever pending, no more."""
    stream, found = Stream(), list[int]()
    timer, before = StreamTimer(Event), Event.made
    for _ in range(100):
        timed(timer, stream, found)
        stream.pass_events(2)
        timer.poll()

    assert 2 == Event.made - before
    assert 100 == len(found)


def test_a_stream_that_stands_still_costs_bounded_memory() -> None:
    """Beyond the bound work is not timed, and counted; the engine goes on."""
    stream, found = Stream(), list[int]()
    timer = StreamTimer(Event, most_pending=3)
    for _ in range(10):
        timed(timer, stream, found)
    stream.pass_events(100)
    timer.poll()
    timed(timer, stream, found)

    assert 3 == len(found)
    assert (1, 7) == (timer.statistics().pending, timer.statistics().skipped)


@pytest.mark.gpu
def test_a_real_copy_takes_its_time() -> None:
    """On a device: a copy of 256 MiB takes more than nothing, and is known without synchronising on the way."""
    import torch  # noqa: PLC0415 - as in conftest: most runs need not pay for it

    def new_event() -> Any:
        return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch has no types here

    source = torch.ones(64 << 20, pin_memory=True)
    stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # as above
    found: list[int] = []
    timer = StreamTimer(new_event)
    pair = timer.begin(stream)
    with torch.cuda.stream(stream):
        source.to("cuda", non_blocking=True)
    timer.end(pair, stream, found.append)
    stream.synchronize()

    assert 1 == timer.poll()
    assert 100_000 < found[0] < 10_000_000_000
