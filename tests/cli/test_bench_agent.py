"""`kvtrail bench agent`: its figures are of their kind, and its comparison of windows finds what was put into them."""

import json

import msgspec
import pytest
from kvtrail_cli.bench.agent_shapes import AgentBench
from kvtrail_cli.bench.agent_steps import EVENTS_A_STEP, step_windows
from kvtrail_cli.bench.agent_windows import WINDOW_STEPS, Window, events_per_s, overhead_of
from kvtrail_cli.main import APP
from kvtrail_engine.testing import CollectingEmitter
from typer.testing import CliRunner


def windows_with(overhead: float, noise: list[int]) -> list[Window]:
    """Windows of which every other one is recorded and dearer by a factor; `noise` falls on neighbours alike."""
    costs = [1_000_000 + noise[number // 2 % len(noise)] for number in range(40)]
    return [
        Window(recorded, int(cost * (overhead if recorded else 1)), 1000, 500)
        for cost, recorded in zip(costs, [True, False] * 20, strict=True)
    ]


@pytest.mark.parametrize("overhead", [1.0, 1.01, 0.98])
def test_neighbouring_windows_show_the_overhead(overhead: float) -> None:
    """What falls on both neighbours cancels; what recording adds stays, within the interval."""
    found = overhead_of(windows_with(overhead, [0, 300_000, -200_000]))

    assert found.low <= found.median <= found.high
    assert 100 * (overhead - 1) == pytest.approx(found.median, abs=0.5)


def test_without_windows_nothing_is_claimed() -> None:
    """A run too short for two windows has an interval that says nothing."""
    found = overhead_of([])

    assert (-100.0, 100.0) == (found.low, found.high)


def test_the_rate_is_that_of_the_recorded_windows() -> None:
    """Events a second of the engine's thread, while events were recorded."""
    assert events_per_s(windows_with(1.0, [0])) == pytest.approx(500_000.0)


def test_the_whole_bench_gives_one_object() -> None:
    """All figures in one object, in their shape; times are above zero, a closed recorder is cheaper than an open one."""
    arguments = ["bench", "agent", "--json", "--rounds", "3", "--engine-s", "1"]
    done = CliRunner().invoke(APP, arguments)
    found = msgspec.convert(json.loads(done.stdout), AgentBench)

    assert done.exit_code == 0
    assert min(found.emit_ns, found.emit_block_ns, found.python_emit_ns, found.prometheus_inc_ns, found.events_per_s) > 0
    assert found.disabled_ns < found.python_emit_ns
    assert found.emit_block_ns < found.python_emit_ns
    assert "cpu-emulated" == found.device


def test_every_other_hundred_steps_is_recorded() -> None:
    """Off, nothing reaches the recorder; on, the fifty events of each step do, as legal ones."""
    recorder = CollectingEmitter()
    windows = step_windows(recorder.as_emitter(), lambda: len(recorder.events), 0.2, lambda _done, _of: None)

    assert [True, False] == [window.recorded for window in windows]
    assert [EVENTS_A_STEP * WINDOW_STEPS, 0] == [window.events for window in windows]
    assert all(window.thread_ns > 0 for window in windows)
