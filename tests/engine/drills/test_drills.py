"""Drills: each strikes where it says, from its beginning to its end, and tells of both."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from kvtrail_engine.demo import demo_drill
from kvtrail_engine.drills.ballast import host_pressure, thrash
from kvtrail_engine.drills.base import Drill
from kvtrail_engine.drills.guest_bursts import nvme_queue, prefetch_flood, write_back_flood
from kvtrail_engine.drills.neighbours import long_prefill, tenant_flood
from kvtrail_engine.drills.noticed_late import NoticedLate
from kvtrail_engine.drills.registry import DRILL_NAMES, DRILLS, Strength, make_drill
from kvtrail_engine.drills.slow_lookup import SlowLookup
from kvtrail_engine.drills.slow_tier import SlowTier
from kvtrail_engine.drills.timer import ScheduledDrill
from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import SettingsError
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.proof import settle
from kvtrail_engine.run import RunResult, run_load
from kvtrail_engine.settings import FloorSettings, StepSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    CopyWaited,
    Event,
    FaultCleared,
    FaultInjected,
    LookupFinished,
    PrefetchIssued,
    PrefetchWasted,
    PrefillChunk,
    RequestAdmitted,
    RequestArrived,
    RequestWaiting,
    SwapInLoaded,
    SwapOutWritten,
)
from kvtrail_schema.lifecycle import fold
from kvtrail_schema.reasons import PrefillReason, WaitReason

from tests.engine.engines import ask, tiny

MS = 1_000_000
NEEDS_MEANS = {"remote-timeout", "late-prefetch"}
NVME = TierSettings(slots=400, workers=4, floor=FloorSettings(read_latency_ns=5 * MS))


def drilled(data_dir: Path, recorded: CollectingEmitter, drill: Drill, **changes: object) -> RunResult:
    """Two seconds of twelve prompts that come back again and again, the drill in the second one."""
    settings = tiny(data_dir, **{"nvme": NVME, "gpu": TierSettings(slots=80), "guest_slots": 64, **changes})
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
    """Both moments are told once, with name, tier and strength."""
    drilled(data_dir, recorded, SlowTier("nvme-slow", Tier.NVME, 60 * MS))
    injected, cleared = recorded.of(FaultInjected), recorded.of(FaultCleared)

    assert [(e.text, e.tier, e.value) for e in injected] == [("nvme-slow", Tier.NVME, 60.0 * MS)]
    assert [(e.text, e.tier) for e in cleared] == [("nvme-slow", Tier.NVME)]
    assert 700 * MS < cleared[0].t_ns - injected[0].t_ns < 3000 * MS


def test_a_slow_tier_is_as_fast_as_before_once_it_is_over(data_dir: Path) -> None:
    """While it lasts reads take longer, and nothing else of the floor is changed; afterwards all of it is back."""
    drill = SlowTier("nvme-slow", Tier.NVME, 60 * MS)
    with Engine(tiny(data_dir, nvme=NVME)) as engine:
        before = engine.floor_of(Tier.NVME).settings
        drill.begin(engine)
        meanwhile = engine.floor_of(Tier.NVME).settings
        drill.end(engine)
        after = engine.floor_of(Tier.NVME).settings

    assert (replace(NVME.floor, read_latency_ns=60 * MS), NVME.floor) == (meanwhile, after)
    assert before == after


def test_nvme_slow_lengthens_the_read_and_not_the_queue(data_dir: Path, recorded: CollectingEmitter) -> None:
    """What grows is the time of each read itself."""
    drilled(data_dir, recorded, SlowTier("nvme-slow", Tier.NVME, 60 * MS))
    before, within = reads(recorded, is_within=False), reads(recorded, is_within=True)

    assert typical_ms(before, "io_ns") < 40
    assert typical_ms(within, "io_ns") >= 60
    assert typical_ms(within, "queue_ns") < 30


def test_nvme_queue_lengthens_the_queue_and_not_the_read(data_dir: Path, recorded: CollectingEmitter) -> None:
    """What grows is the wait for a worker, behind somebody else's ops, which are told like everybody's."""
    drilled(data_dir, recorded, nvme_queue(seed=1, burst_ops=64, every_s=0.1))
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
        run_load(engine, [], drill=ScheduledDrill(nvme_queue(), 0, 1))


def waited_ns(recorded: CollectingEmitter, req: int) -> Counter[WaitReason]:
    """How long a request waited for its first step, by reason."""
    changes = [e for e in recorded.events if isinstance(e, RequestWaiting | RequestAdmitted) and e.req == req]
    waited = Counter[WaitReason]()
    for begun, ended in pairwise(changes):
        if isinstance(begun, RequestWaiting):
            waited[begun.reason] += ended.t_ns - begun.t_ns
    return waited


def test_long_prefill_makes_others_wait_for_budget(data_dir: Path, recorded: CollectingEmitter) -> None:
    """Where there is room for all of them, the victims' longest waits are waits for budget."""
    step = StepSettings(budget_tokens=128, floor_prefill_token_ns=100_000)
    drill = long_prefill(seed=1, prompt_tokens=64 * 32, every_s=0.5)
    result = drilled(data_dir, recorded, drill, step=step, gpu=TierSettings(slots=400))
    start_ns = recorded.of(FaultInjected)[0].t_ns
    worst = max((r for r in result.results if r.arrived_ns > start_ns), key=lambda r: r.ttft_ns or 0)
    waited = waited_ns(recorded, worst.req)

    assert (worst.ttft_ns or 0) > 60 * MS
    assert [WaitReason.BUDGET] == [reason for reason, _ in waited.most_common(1)]
    assert waited[WaitReason.BUDGET] > (worst.ttft_ns or 0) / 2


def within(recorded: CollectingEmitter, event: Event) -> bool:
    """Whether something happened while the fault lasted."""
    return recorded.of(FaultInjected)[0].t_ns <= event.t_ns < recorded.of(FaultCleared)[0].t_ns


def test_a_flood_of_prefetches_is_read_and_wasted(data_dir: Path, recorded: CollectingEmitter) -> None:
    """Each block that was issued is read by a real op that names its prefetch, and ends wasted."""
    drilled(data_dir, recorded, prefetch_flood(seed=1, burst_ops=64, every_s=0.1))
    issued, wasted = recorded.of(PrefetchIssued), recorded.of(PrefetchWasted)
    read = {e.prefetch for e in recorded.of(SwapInLoaded)}

    assert len(issued) >= 64
    assert {e.prefetch for e in issued} == {e.prefetch for e in wasted}
    assert {e.prefetch for e in issued} <= read


def test_a_flood_of_writes_is_written(data_dir: Path, recorded: CollectingEmitter) -> None:
    """The neighbour's blocks go to nvme again and again, and others' reads wait behind them."""
    nvme = replace(NVME, floor=replace(NVME.floor, write_latency_ns=5 * MS))
    drilled(data_dir, recorded, write_back_flood(seed=1, burst_ops=64, every_s=0.1), nvme=nvme)
    guests = {e.req for e in recorded.of(RequestArrived) if e.text == "bulk-neighbour-0"}
    before, behind = (typical_ms(reads(recorded, is_within=is_within), "queue_ns") for is_within in (False, True))
    written = [e for e in recorded.of(SwapOutWritten) if e.req in guests and within(recorded, e)]

    assert len(written) >= 64
    assert {(e.src, e.dst) for e in written} == {(Tier.HOST, Tier.NVME)}
    assert behind > before + 20


def share_of_nvme(recorded: CollectingEmitter, *, is_within: bool) -> float:
    """Of the blocks that were loaded to the gpu, within the fault or before it: how many came from nvme."""
    start_ns = recorded.of(FaultInjected)[0].t_ns
    loads = [e for e in recorded.of(SwapInLoaded) if e.dst is Tier.GPU]
    chosen = [e for e in loads if (within(recorded, e) if is_within else e.t_ns < start_ns)]
    return sum(e.src is Tier.NVME for e in chosen) / max(len(chosen), 1)


def test_pressure_on_host_moves_reads_to_nvme_and_goes_away(data_dir: Path, recorded: CollectingEmitter) -> None:
    """With most of host taken, more is read from nvme; nothing was lost, and afterwards the room is there again."""
    host = TierSettings(slots=80)
    settings = tiny(data_dir, nvme=NVME, gpu=TierSettings(slots=40), host=host)
    arrivals = [Arrival(number * 20 * MS, ask(number % 12, 9 * 32, 1)) for number in range(100)]
    with Engine(settings, [recorded.as_emitter()]) as engine:
        run_load(engine, arrivals, drill=ScheduledDrill(host_pressure(0.8), 700 * MS, 1500 * MS))
        settle(engine)
        pool = engine.statistics().pools[Tier.HOST]

    assert pool.slots == pool.free + pool.evictable
    assert fold(recorded.events).violations == ()
    assert share_of_nvme(recorded, is_within=True) > share_of_nvme(recorded, is_within=False) + 0.2


def test_thrash_computes_again_what_was_evicted(data_dir: Path, recorded: CollectingEmitter) -> None:
    """With little room anywhere, prompts that came before are computed again, and the chunks say why."""
    settings = tiny(data_dir, gpu=TierSettings(slots=80), host=TierSettings(slots=80))
    arrivals = [Arrival(number * 20 * MS, ask(number % 12, 9 * 32, 1)) for number in range(100)]
    with Engine(settings, [recorded.as_emitter()]) as engine:
        run_load(engine, arrivals, drill=ScheduledDrill(thrash(0.85), 900 * MS, 1900 * MS))
        settle(engine)
        pools = engine.statistics().pools
    again = [e for e in recorded.of(PrefillChunk) if e.reason is PrefillReason.EVICTED]

    assert len([e for e in again if within(recorded, e)]) > 5
    assert all(pool.slots == pool.free + pool.evictable for pool in pools.values())


def test_a_slow_lookup_is_told_as_such(data_dir: Path, recorded: CollectingEmitter) -> None:
    """Lookups within the fault take long, some of them, and each request pays once."""
    drilled(data_dir, recorded, SlowLookup(seed=1, stall_ns=30 * MS))
    slow = [e for e in recorded.of(LookupFinished) if (e.duration_ns or 0) >= 30 * MS]

    assert slow
    assert all(within(recorded, e) for e in slow)
    assert len({e.req for e in slow}) == len(slow)


def test_what_is_noticed_late_has_ended_in_time(data_dir: Path, recorded: CollectingEmitter) -> None:
    """Reads end as soon as before; requests wait longer than their reads took."""
    drilled(data_dir, recorded, NoticedLate(120 * MS))
    ended = {e.op: e.t_ns for e in recorded.of(SwapInLoaded)}
    late = [e.t_ns - ended[e.op] for e in recorded.of(CopyWaited) if e.op in ended and within(recorded, e)]
    usual = [e.t_ns - ended[e.op] for e in recorded.of(CopyWaited) if e.op in ended and not within(recorded, e)]

    assert max(late) > 60 * MS
    assert median(late) > median(usual) + 15 * MS


def test_a_flood_of_requests_is_of_one_tenant(data_dir: Path, recorded: CollectingEmitter) -> None:
    """The neighbour's requests come at their rate, while the fault lasts."""
    drilled(data_dir, recorded, tenant_flood(seed=1, requests_per_s=100))
    flood = [e for e in recorded.of(RequestArrived) if (e.text or "").startswith("flood-neighbour")]

    assert 30 < len(flood) < 200
    assert min(e.t_ns for e in flood) >= recorded.of(FaultInjected)[0].t_ns


def test_drills_are_known_by_name() -> None:
    """`none` is no drill, and an unknown name says which there are."""
    assert DRILL_NAMES[:4] == ("none", "nvme-slow", "nvme-queue", "long-prefill")
    assert make_drill("none", 0) is None
    with pytest.raises(SettingsError, match="nvme-queue"):
        make_drill("nothing", 0)


@pytest.mark.parametrize("name", sorted(set(DRILLS) - NEEDS_MEANS))
def test_a_drill_has_three_strengths(name: str) -> None:
    """Each is made under its own name, and no two strengths are the same."""
    made = [make_drill(name, 0, strength) for strength in Strength]

    assert {drill.name for drill in made if drill is not None} == {name}
    assert len({drill.value for drill in made if drill is not None}) == 3


@pytest.mark.parametrize("name", sorted(NEEDS_MEANS))
def test_what_a_drill_needs_is_said(name: str) -> None:
    """A drill without its server, or its hints, is refused before anything runs."""
    with pytest.raises(SettingsError, match=name):
        make_drill(name, 0)


@pytest.mark.parametrize("name", sorted(set(DRILLS) - NEEDS_MEANS))
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
