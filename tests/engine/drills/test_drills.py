"""Drills: each strikes where it says, from its beginning to its end, and tells of both."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pytest
from kvtrail_engine.demo import demo_drill
from kvtrail_engine.drills.base import Drill
from kvtrail_engine.drills.long_prefill import LongPrefill
from kvtrail_engine.drills.nvme_queue import NvmeQueue
from kvtrail_engine.drills.nvme_slow import NvmeSlow
from kvtrail_engine.drills.registry import DRILL_NAMES, make_drill
from kvtrail_engine.drills.timer import ScheduledDrill
from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import SettingsError
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.run import RunResult, run_load
from kvtrail_engine.settings import FloorSettings, StepSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import FaultCleared, FaultInjected, RequestArrived, RequestWaiting, SwapInLoaded
from kvtrail_schema.reasons import WaitReason

from tests.engine.engines import ask, tiny

MS = 1_000_000
NVME = TierSettings(slots=400, workers=4, floor=FloorSettings(read_latency_ns=5 * MS))


def drilled(data_dir: Path, recorded: CollectingEmitter, drill: Drill, **changes: object) -> RunResult:
    """Two seconds of twelve prompts that come back again and again, the drill in the second one."""
    settings = tiny(data_dir, nvme=NVME, gpu=TierSettings(slots=80), guest_slots=64, **changes)
    arrivals = [Arrival(number * 20 * MS, ask(number % 12, 9 * 32, 1)) for number in range(100)]
    with Engine(settings, [recorded.as_emitter()]) as engine:
        return run_load(engine, arrivals, drill=ScheduledDrill(drill, 1000 * MS, 1900 * MS))


def reads(recorded: CollectingEmitter, is_within: bool) -> list[SwapInLoaded]:
    """The first rows of nvme reads of tenants with requests, within the fault or before it."""
    start_ns = recorded.of(FaultInjected)[0].t_ns
    end_ns = recorded.of(FaultCleared)[0].t_ns
    rows = [e for e in recorded.of(SwapInLoaded) if e.src is Tier.NVME and e.dst is Tier.GPU and e.queue_ns is not None]
    return [e for e in rows if (start_ns + 50 * MS < e.t_ns < end_ns if is_within else e.t_ns < start_ns)]


def typical_ms(rows: Sequence[SwapInLoaded], part: str) -> float:
    """The median of one part."""
    return float(median(getattr(row, part) for row in rows)) / MS


def test_a_drill_tells_its_beginning_and_its_end(data_dir: Path, recorded: CollectingEmitter) -> None:
    """Both moments are told once, with name, tier and strength; the floor is back afterwards."""
    drilled(data_dir, recorded, NvmeSlow(60 * MS))
    injected, cleared = recorded.of(FaultInjected), recorded.of(FaultCleared)

    assert [(e.text, e.tier, e.value) for e in injected] == [("nvme-slow", Tier.NVME, 60.0 * MS)]
    assert [(e.text, e.tier) for e in cleared] == [("nvme-slow", Tier.NVME)]
    assert cleared[0].t_ns - injected[0].t_ns == pytest.approx(900 * MS, rel=0.2)


def test_nvme_slow_lengthens_the_read_and_not_the_queue(data_dir: Path, recorded: CollectingEmitter) -> None:
    """What grows is the time of each read itself."""
    drilled(data_dir, recorded, NvmeSlow(60 * MS))
    before, within = reads(recorded, is_within=False), reads(recorded, is_within=True)

    assert typical_ms(before, "io_ns") < 40
    assert typical_ms(within, "io_ns") >= 60
    assert typical_ms(within, "queue_ns") < 30


def test_nvme_queue_lengthens_the_queue_and_not_the_read(data_dir: Path, recorded: CollectingEmitter) -> None:
    """What grows is the wait for a worker, behind somebody else's ops, which are told like everybody's."""
    drilled(data_dir, recorded, NvmeQueue(seed=1, burst_ops=64, every_s=0.1))
    before, within = reads(recorded, is_within=False), reads(recorded, is_within=True)
    guests = {e.req for e in recorded.of(RequestArrived) if e.text == "bulk-neighbour-0"}
    bulk = [e for e in recorded.of(SwapInLoaded) if e.req in guests]

    assert typical_ms(within, "queue_ns") > typical_ms(before, "queue_ns") + 20
    assert typical_ms(within, "io_ns") < 4 * typical_ms(before, "io_ns")
    assert len(bulk) >= 64
    assert {(e.src, e.dst) for e in bulk} == {(Tier.NVME, Tier.HOST)}


def test_nvme_queue_needs_a_quota(data_dir: Path) -> None:
    """An engine without room for the guest says which setting to change."""
    with Engine(tiny(data_dir)) as engine, pytest.raises(SettingsError, match="guest_slots is 0"):
        run_load(engine, [], drill=ScheduledDrill(NvmeQueue(), 0, 1))


def test_long_prefill_makes_others_wait_for_budget(data_dir: Path, recorded: CollectingEmitter) -> None:
    """The victims' longest waits are waits for budget."""
    step = StepSettings(budget_tokens=128, floor_prefill_token_ns=100_000)
    result = drilled(data_dir, recorded, LongPrefill(seed=1, prompt_tokens=64 * 32, every_s=0.5), step=step)
    waits = {e.req: e.t_ns for e in recorded.of(RequestWaiting) if e.reason is WaitReason.BUDGET}
    start_ns = recorded.of(FaultInjected)[0].t_ns
    worst = max((r for r in result.results if r.arrived_ns > start_ns), key=lambda r: r.ttft_ns or 0)

    assert (worst.ttft_ns or 0) > 60 * MS
    assert worst.req in waits


def test_drills_are_known_by_name() -> None:
    """`none` is no drill, and an unknown name says which there are."""
    assert DRILL_NAMES == ("none", "nvme-slow", "nvme-queue", "long-prefill")
    assert make_drill("none", 0) is None
    with pytest.raises(SettingsError, match="nvme-queue"):
        make_drill("nothing", 0)


@pytest.mark.parametrize("name", DRILL_NAMES[1:])
def test_the_demos_fault_lies_within_the_run(name: str) -> None:
    """There is a healthy stretch before the fault, and it ends before the run does; the same seed gives the same moments."""
    for seed in range(20):
        scheduled = demo_drill(name, seed)
        assert scheduled is not None
        assert 35e9 < scheduled.start_ns < scheduled.end_ns < 90e9
        assert 15e9 < scheduled.end_ns - scheduled.start_ns < 30e9
        again = demo_drill(name, seed)
        assert again is not None
        assert (again.start_ns, again.end_ns) == (scheduled.start_ns, scheduled.end_ns)
