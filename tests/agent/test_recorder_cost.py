"""What the recorder says of its own cost: right on average, whatever the rhythm of its engine."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.writer_choice import WriterKind, writer_in_use
from kvtrail_schema.counters import RECORDER_COST
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import CounterSampled
from kvtrail_schema.identity import StepId
from kvtrail_schema.kinds import Kind

from tests.agent.test_recorder import recorded, start_unshipped
from tests.agent.waiting import wait_for

Calls = Callable[[Recorder], tuple[Callable[[], int], Callable[[], int]]]
"""A cheap call of a recorder, and a dear one."""
LONGEST_CALL_NS, LONGEST_ROW_NS = 10_000, 20
"""A call that takes longer was interrupted by the system, and is counted as this: by the recorder as by its test."""


def cost_of(recorder: Recorder) -> int:
    """The recorder's count of its own cost."""
    cost_ns = recorder._cost_ns()
    assert cost_ns is not None
    return cost_ns


def test_beats_say_what_recording_took(private_dir: Path) -> None:
    """What emitting took of the engine's time is counted, of single events and of rows: some of the time of a loop that does
    nothing else, never much more than all of it, and nothing while nothing is recorded.
    """
    if writer_in_use() is WriterKind.PYTHON:
        return  # it does not time itself: see the next test
    recorder = start_unshipped(private_dir, heartbeat_interval_ms=60_000, slot_count=1 << 16)
    begin_ns, before_ns = time.perf_counter_ns(), cost_of(recorder)
    for number in range(30_000):
        recorder.step_started(StepId(number))
    middle_ns, events_ns = time.perf_counter_ns(), cost_of(recorder)
    for _ in range(500):
        recorder.emit_blocks(Kind.BLOCK_CREATED, range(1, 60), range(59), tier=Tier.GPU)
    end_ns, rows_ns = time.perf_counter_ns(), cost_of(recorder)
    time.sleep(0.01)
    still_ns = cost_of(recorder)
    recorder.close()

    assert 0.02 < (events_ns - before_ns) / (middle_ns - begin_ns) < 2
    assert 0.02 < (rows_ns - events_ns) / (end_ns - middle_ns) < 2
    assert rows_ns == still_ns


def test_the_cost_is_an_event(private_dir: Path) -> None:
    """Beside each heartbeat stands the counter that dashboards and `OBSERVER_COST` read; the writer in Python has none."""
    recorder = start_unshipped(private_dir)
    wait_for(lambda: recorder.produced >= 8, "three heartbeats")
    recorder.close()
    told = [event.value for event in recorded(recorder) if isinstance(event, CounterSampled) and event.text == RECORDER_COST]

    assert told == sorted(told)
    assert (len(told) >= 2) is (writer_in_use() is not WriterKind.PYTHON)


def single_events(recorder: Recorder) -> tuple[Callable[[], int], Callable[[], int]]:
    """A cheap event, and one with a text that is long to copy."""
    text = "x" * 1_000
    return (lambda: recorder.step_started(StepId(1))), (lambda: recorder.manifest_declared(text))


def calls_with_rows(recorder: Recorder) -> tuple[Callable[[], int], Callable[[], int]]:
    """A call with one row, and one with two thousand."""
    blocks, one = list(range(1, 2_001)), [1]
    return (
        lambda: recorder.emit_blocks(Kind.BLOCK_CREATED, one, one, tier=Tier.GPU),
        lambda: recorder.emit_blocks(Kind.BLOCK_CREATED, blocks, blocks, tier=Tier.GPU),
    )


def seen_from_outside(first: Callable[[], int], second: Callable[[], int], times: int, most_ns: int) -> int:
    """What two calls took that alternate so many times, by the clock around each of them."""
    took_ns = 0
    for _ in range(times):
        for call in (first, second):
            begin_ns = time.perf_counter_ns()
            call()
            took_ns += min(time.perf_counter_ns() - begin_ns, most_ns)
    return took_ns


def counted_and_seen(folder: Path, calls: Calls, times: int, rows: int, *, is_dear_first: bool) -> tuple[int, int]:
    """What one recorder counts of a rhythm, and what was seen from outside: all, but for what a closed recorder takes. That
    one writes nothing, so it is the cost of calling and of the clock alone.
    """
    recorder = start_unshipped(folder, heartbeat_interval_ms=60_000, slot_count=1 << 17, text_bytes=1 << 26)
    first, second = reversed(calls(recorder)) if is_dear_first else calls(recorder)
    most_ns, before_ns = LONGEST_CALL_NS + LONGEST_ROW_NS * rows, cost_of(recorder)
    open_ns = seen_from_outside(first, second, times, most_ns)
    counted_ns = cost_of(recorder) - before_ns
    recorder.close()
    recorder.ring_path.unlink()
    return counted_ns, open_ns - seen_from_outside(first, second, times, most_ns)


@pytest.mark.parametrize("is_dear_first", [False, True], ids=["cheap first", "dear first"])
@pytest.mark.parametrize(
    ("calls", "times", "rows"), [(single_events, 60_000, 0), (calls_with_rows, 3_200, 2_000)], ids=["events", "rows"]
)
def test_a_rhythm_of_the_engine_does_not_hide_what_it_costs(
    calls: Calls,
    times: int,
    rows: int,
    private_dir: Path,
    *,
    is_dear_first: bool,
) -> None:
    """Where cheap and dear calls alternate, what is counted is what both take, and not what one of them does. Of three
    recorders together, each with some hundreds of timed calls.
    """
    if writer_in_use() is WriterKind.PYTHON:
        return  # it does not time itself
    found = [counted_and_seen(private_dir, calls, times, rows, is_dear_first=is_dear_first) for _ in range(3)]
    counted_ns, seen_ns = map(sum, zip(*found, strict=True))

    assert pytest.approx(seen_ns, rel=0.4) == counted_ns
