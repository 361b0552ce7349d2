"""The open loop, and what a run sums up."""

import threading
from pathlib import Path

from kvtrail_engine.engine import Engine
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.request import Outcome
from kvtrail_engine.run import Progress, run_load
from kvtrail_engine.settings import StepSettings

from tests.engine.engines import ask, tiny

MS = 1_000_000


def test_arrivals_do_not_wait_for_answers(data_dir: Path) -> None:
    """A slow engine gets its requests no later: they come by their own clock."""
    arrivals = [Arrival(number * 10 * MS, ask(number, 40, 1)) for number in range(10)]
    with Engine(tiny(data_dir, step=StepSettings(max_sequences=1, floor_ns=30 * MS))) as engine:
        result = run_load(engine, arrivals)
    offsets_ns = [each.arrived_ns - result.started_ns for each in result.results]

    assert all(0 <= at - arrival.at_ns < 100 * MS for at, arrival in zip(offsets_ns, arrivals, strict=True))
    assert result.ttft_ns[-1] > result.ttft_ns[0]


def test_a_run_sums_up(data_dir: Path) -> None:
    """Every request has its result; device and floors stand beside the figures; progress ends complete."""
    seen: list[Progress] = []
    with Engine(tiny(data_dir)) as engine:
        result = run_load(engine, [Arrival(0, ask(number % 9, 9 * 32)) for number in range(40)], seen.append)

    assert result.count(Outcome.FINISHED) == 40
    assert (len(result.ttft_ns), len(result.tpot_ns)) == (40, 40)
    assert result.device == "cpu-emulated"
    assert result.floors.startswith("floors: host read 0 ms")
    assert (seen[-1].finished, seen[-1].total) == (40, 40)
    assert result.computed_tokens + 32 * sum(result.restored_blocks.values()) <= 40 * 9 * 32


def test_a_run_can_be_stopped(data_dir: Path) -> None:
    """Setting `stop` ends the load early, with the answers to what was sent."""
    stop = threading.Event()
    stop.set()
    with Engine(tiny(data_dir)) as engine:
        result = run_load(engine, [Arrival(0, ask(1)), Arrival(3600 * 10**9, ask(2))], stop=stop)

    assert [each.name for each in result.results] == ["r1"]
