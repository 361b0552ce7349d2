"""`kvtrail bench agent`: its figures are of their kind, and its comparison of windows finds what was put into them."""

import json

import msgspec
import pytest
from kvtrail_cli.bench.agent_engine import Switch, Window, events_per_s, overhead_of
from kvtrail_cli.bench.agent_shapes import AgentBench
from kvtrail_cli.main import APP
from typer.testing import CliRunner


def windows_with(overhead: float, noise: list[int]) -> list[Window]:
    """Windows of which every other one is recorded and dearer by a factor; `noise` falls on neighbours alike."""
    costs = [1_000_000 + noise[number // 2 % len(noise)] for number in range(40)]
    return [
        Window(recorded, int(cost * (overhead if recorded else 1)), 10**9, 1000, 500)
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
    """Events a second while events were recorded."""
    assert events_per_s(windows_with(1.0, [0])) == pytest.approx(500.0)


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


class Counting:
    """A recorder that counts."""

    def __init__(self) -> None:
        self.count = 0

    def step_started(self, step: int, t_ns: int) -> int:
        """One more."""
        self.count += 1
        return self.count

    def step_finished(self, step: int, tokens: int, *rest: object) -> int:
        """One more."""
        return self.step_started(step, 0)

    evicted = step_finished


def test_the_switch_records_every_other_hundred_steps() -> None:
    """Off, nothing reaches the recorder; on, everything does."""
    recorder = Counting()
    switch = Switch(recorder, lambda: recorder.count)  # type: ignore[arg-type]  # as much of an emitter as is called here
    for step in range(401):
        switch.step_started(step, 0)
        switch.evicted(1, 2)
        switch.step_finished(step, 10)

    assert [False, True, False, True] == [window.recorded for window in switch.windows]
    assert [0, 300, 0, 300] == [window.events for window in switch.windows]
    assert [1000] * 4 == [window.tokens for window in switch.windows]
