"""Fetching ahead: what it brings, what it refuses to do, and that every block of it has exactly one end."""

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_engine.engine import Engine
from kvtrail_engine.identity.selector import Selector
from kvtrail_engine.prefetch_window import Outlook, window
from kvtrail_engine.proof import settle, sink
from kvtrail_engine.request import RequestHandle
from kvtrail_engine.settings import EngineSettings, FloorSettings, PrefetchSettings, StepSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    Evicted,
    PrefetchCancelled,
    PrefetchCompleted,
    PrefetchDeadlineMissed,
    PrefetchIssued,
    PrefetchReady,
    PrefetchSkipped,
    PrefetchUsed,
    PrefetchWasted,
    PrefixHit,
    SwapInFailed,
    SwapInLoaded,
    SwapInQueued,
    SwapInStarted,
)
from kvtrail_schema.lifecycle import fold
from kvtrail_schema.reasons import EvictReason, PrefetchCancelReason, PrefetchSkipReason, PrefetchWasteReason

from tests.engine.conftest import StartEngine
from tests.engine.engines import BLOCK, ask, tiny

MS = 1_000_000
ENDS = (PrefetchUsed, PrefetchWasted, PrefetchCancelled)
SOON_NS = 500 * MS
ON = PrefetchSettings(window=64, gpu_reserve_slots=1000, host_share=1)
"""On, and never straight to the gpu."""
TO_GPU = PrefetchSettings(window=64, gpu_reserve_slots=0)


def fetching(data_dir: Path, prefetch: PrefetchSettings = ON, **changes: Any) -> EngineSettings:
    """A tiny engine that fetches ahead."""
    return tiny(data_dir, prefetch=prefetch, **changes)


def stored(engine: Engine, *numbers: int) -> None:
    """Have prompts on nvme alone."""
    for number in numbers:
        engine.submit(ask(number)).result(10)
    settle(engine)
    engine.ask(engine.maintenance.demote_all)
    settle(engine)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))


def until(recorded: CollectingEmitter, kind: Any, count: int = 1) -> None:
    """Wait for events of a kind."""
    deadline_s = time.monotonic() + 5
    while len(recorded.of(kind)) < count:
        assert time.monotonic() < deadline_s, f"{kind.__name__} was told {len(recorded.of(kind))} times, not {count}"
        time.sleep(0.002)


def ends(recorded: CollectingEmitter) -> Counter[tuple[int, int]]:
    """How often each (prefetch, block) ended."""
    return Counter((event.prefetch, event.block) for event in recorded.events if isinstance(event, ENDS))


def assert_each_ends_once(recorded: CollectingEmitter) -> None:
    """Each issued block has exactly one end, and nothing else has one."""
    issued = Counter((event.prefetch, event.block) for event in recorded.of(PrefetchIssued))

    assert issued == ends(recorded)
    assert set(issued.values()) <= {1}
    assert () == fold(recorded.events).violations


@pytest.mark.parametrize(("settings", "dst"), [(ON, Tier.HOST), (TO_GPU, Tier.GPU)])
def test_a_session_that_goes_on_finds_its_blocks_near(
    data_dir: Path, recorded: CollectingEmitter, settings: PrefetchSettings, dst: Tier
) -> None:
    """A hint brings the prefix to host, or to the gpu while it has room; the request uses it, and all of that is told."""
    with Engine(fetching(data_dir, settings), [recorded.as_emitter()]) as engine:
        stored(engine, 1)
        engine.hint("s", ask(1), SOON_NS)
        until(recorded, PrefetchReady, 5)
        result = engine.submit(ask(1, 7 * BLOCK)).result(10)
        hits = {event.tier for event in recorded.of(PrefixHit) if event.req == result.req}
        used = recorded.of(PrefetchUsed)
    reads = [event for event in recorded.of(SwapInLoaded) if event.prefetch is not None]

    assert {dst} == hits
    assert {(result.req, event.block) for event in recorded.of(PrefetchIssued)} == {(e.req, e.block) for e in used}
    assert {(Tier.NVME, dst)} == {(event.src, event.dst) for event in recorded.of(PrefetchIssued)}
    assert 5 == len(reads) == len(recorded.of(PrefetchCompleted))
    assert [] == recorded.of(PrefetchWasted)
    assert_each_ends_once(recorded)


def test_who_waits_for_room_is_fetched_for(data_dir: Path, recorded: CollectingEmitter) -> None:
    """While a request waits for capacity its prefix comes up from nvme, so that its load is from host."""
    settings = fetching(data_dir, step=StepSettings(floor_ns=5 * MS), host=TierSettings(slots=100))
    with Engine(settings, [recorded.as_emitter()]) as engine:
        stored(engine, 1)
        big = engine.submit(ask(2, 38 * BLOCK, 30))
        while not engine.statistics().active:
            pass
        small = engine.submit(ask(1)).result(20)
        big.result(20)

    assert {Tier.HOST: 4} == small.restored
    assert {small.req} == {event.req for event in recorded.of(PrefetchUsed)}
    assert_each_ends_once(recorded)


def test_it_looks_up_before_it_makes_room(data_dir: Path, recorded: CollectingEmitter) -> None:
    """For blocks that are on host already nothing is evicted and nothing is read; for others, what nvme has too makes room."""
    host = TierSettings(slots=10)
    with Engine(fetching(data_dir, host=host, host_low_slots=0), [recorded.as_emitter()]) as engine:
        for number in (1, 2, 3):
            stored(engine, number)
        for number in (1, 2):
            engine.hint(f"s{number}", ask(number), SOON_NS)
            until(recorded, PrefetchReady, 5 * number)
        for number in (1, 2):
            engine.submit(ask(number)).result(10)
        settle(engine)
        before = len(recorded.of(PrefetchIssued)), len(recorded.of(Evicted))
        engine.hint("again", ask(1), SOON_NS)
        settle(engine)
        after = len(recorded.of(PrefetchIssued)), len(recorded.of(Evicted))
        engine.hint("third", ask(3), SOON_NS)
        until(recorded, PrefetchReady, 15)
    made_room = {event.reason for event in recorded.of(Evicted) if event.tier is Tier.HOST}

    assert before == after
    assert EvictReason.PREFETCH_ROOM in made_room
    assert_each_ends_once(recorded)


@pytest.mark.parametrize(
    ("changes", "use_in_ns", "reason"),
    [
        ({"byte_cap": 1}, SOON_NS, PrefetchSkipReason.BYTE_CAP),
        ({}, 1, PrefetchSkipReason.NO_BANDWIDTH),
        ({"window": 0}, SOON_NS, PrefetchSkipReason.DISABLED),
    ],
)
def test_what_is_not_fetched_is_told_with_its_reason(
    data_dir: Path, recorded: CollectingEmitter, changes: dict[str, Any], use_in_ns: int, reason: PrefetchSkipReason
) -> None:
    """Once for each reason, and nothing is read."""
    slow = TierSettings(slots=256, workers=2, floor=FloorSettings(read_latency_ns=20 * MS))
    with Engine(fetching(data_dir, replace(ON, **changes), nvme=slow), [recorded.as_emitter()]) as engine:
        stored(engine, 1)
        engine.hint("s", ask(1), use_in_ns)
        until(recorded, PrefetchSkipped)
        settle(engine)

    assert [reason] == [event.reason for event in recorded.of(PrefetchSkipped)]
    assert [] == recorded.of(PrefetchIssued)


def test_no_room_is_told(data_dir: Path, recorded: CollectingEmitter) -> None:
    """Where host holds only what nobody else has, nothing leaves for a guess."""
    host = TierSettings(slots=5)
    with Engine(fetching(data_dir, host=host, host_low_slots=0), [recorded.as_emitter()]) as engine:
        stored(engine, 1)
        engine.submit(ask(2)).result(10)
        settle(engine)
        engine.hint("s", ask(1), SOON_NS)
        until(recorded, PrefetchSkipped)

    assert [PrefetchSkipReason.NO_ROOM] == [event.reason for event in recorded.of(PrefetchSkipped)]
    assert [] == recorded.of(PrefetchIssued)


SLOW_NVME = TierSettings(slots=256, workers=1, floor=FloorSettings(read_latency_ns=120 * MS))


def test_a_full_queue_is_told(data_dir: Path, recorded: CollectingEmitter) -> None:
    """Where the tier's queue is full nothing is added to it, once there is room the rest is fetched."""
    nvme = replace(SLOW_NVME, queue_ops=1)
    with Engine(fetching(data_dir, nvme=nvme, op_blocks=1), [recorded.as_emitter()]) as engine:
        stored(engine, 1)
        for _ in range(5):  # the short queue takes one of its blocks at a time
            sink(engine, Tier.NVME)
        engine.hint("s", ask(1), 2_000 * MS)
        until(recorded, PrefetchIssued, 5)
        settle(engine)
    skipped = recorded.of(PrefetchSkipped)

    assert skipped
    assert {PrefetchSkipReason.BACKPRESSURE} == {event.reason for event in skipped}
    assert {0} == {event.depth for event in recorded.of(PrefetchIssued)}
    assert_each_ends_once(recorded)


def slow_settings(data_dir: Path, **changes: Any) -> EngineSettings:
    """One slow thread for nvme, an op a block, so that later ops wait in the queue."""
    return fetching(data_dir, replace(ON, **changes), nvme=SLOW_NVME, op_blocks=1)


def hinted(engine: Engine, recorded: CollectingEmitter, use_in_ns: int = 2_000 * MS) -> None:
    """Five ops of a hint, the first of them in service."""
    stored(engine, 1, 2)
    engine.hint("s", ask(1), use_in_ns)
    until(recorded, PrefetchIssued, 5)


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (lambda engine: engine.forget_hint("s"), PrefetchCancelReason.REQUEST_GONE),
        (lambda engine: engine.hint("s", ask(2), 1_000 * MS), PrefetchCancelReason.SUPERSEDED),
        (lambda engine: engine.ask(lambda: engine.lifecycle.prefetcher.degrade(is_on=True)), PrefetchCancelReason.DEGRADED),
        (lambda engine: engine.close(), PrefetchCancelReason.SHUTDOWN),
    ],
)
def test_queued_reads_are_called_off_at_once(
    data_dir: Path, recorded: CollectingEmitter, act: Any, reason: PrefetchCancelReason
) -> None:
    """They leave the queue with their reason; the read that has begun ends, and is wasted."""
    with Engine(slow_settings(data_dir), [recorded.as_emitter()]) as engine:
        hinted(engine, recorded)
        act(engine)
        until(recorded, PrefetchCancelled, 3) if reason is not PrefetchCancelReason.SHUTDOWN else None
    cancelled = [event for event in recorded.of(PrefetchCancelled) if event.reason is reason]

    assert len(cancelled) >= 3
    assert len(recorded.of(SwapInFailed)) >= 3
    assert_each_ends_once(recorded)


def test_a_deadline_calls_off_what_waits_and_is_told(data_dir: Path, recorded: CollectingEmitter) -> None:
    """A block that is not there in time misses its deadline, beside its end; what had not begun is not begun any more."""
    nvme = TierSettings(slots=256, workers=1)
    with Engine(fetching(data_dir, replace(ON, slack_ns=0), nvme=nvme, op_blocks=1), [recorded.as_emitter()]) as engine:
        stored(engine, 1)
        # Slower than it knows: otherwise it would fetch only what comes in time.
        engine.floor_of(Tier.NVME).settings = SLOW_NVME.floor
        engine.hint("s", ask(1), 150 * MS)
        until(recorded, PrefetchCancelled, 3)
        settle(engine)
    missed = [event.prefetch for event in recorded.of(PrefetchDeadlineMissed)]
    late = {event.prefetch for event in recorded.of(PrefetchCancelled) if event.reason is PrefetchCancelReason.DEADLINE}
    begun = {event.prefetch for event in recorded.of(SwapInStarted)}

    assert len(late - begun) >= 3
    assert late <= set(missed)
    assert len(set(missed)) == len(missed)
    assert_each_ends_once(recorded)


def test_a_session_that_never_goes_on_is_given_up(data_dir: Path, recorded: CollectingEmitter) -> None:
    """What was fetched for it is wasted once its time of grace is over, not before."""
    settings = replace(ON, hint_grace_ns=50 * MS)
    with Engine(fetching(data_dir, settings), [recorded.as_emitter()]) as engine:
        stored(engine, 1)
        engine.hint("s", ask(1), 100 * MS)
        until(recorded, PrefetchReady, 5)
        early = len(recorded.of(PrefetchWasted))
        until(recorded, PrefetchWasted, 5)

    assert 0 == early
    assert {PrefetchWasteReason.NEVER_NEEDED} == {event.reason for event in recorded.of(PrefetchWasted)}
    assert_each_ends_once(recorded)


def test_what_is_invalidated_on_its_way_is_wasted(data_dir: Path, recorded: CollectingEmitter) -> None:
    """An invalidation takes what a prefetch brings as well, whether it has landed or not."""
    with Engine(slow_settings(data_dir), [recorded.as_emitter()]) as engine:
        hinted(engine, recorded)
        came = engine.invalidate(Selector(tenant="default"))
        settle(engine)

    assert 0 == came.unfinished
    assert PrefetchWasteReason.EVICTED_BEFORE_USE in {event.reason for event in recorded.of(PrefetchWasted)}
    assert_each_ends_once(recorded)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("reserve", [0, 1000])
def test_each_issued_block_has_exactly_one_end(data_dir: Path, recorded: CollectingEmitter, seed: int, reserve: int) -> None:
    """Whatever is asked, hinted, called off, cleared and invalidated at random."""
    random = np.random.default_rng((seed, reserve))
    settings = replace(ON, gpu_reserve_slots=reserve, hint_grace_ns=30 * MS, deadline_ns=20 * MS, slack_ns=5 * MS)
    slow = {"floor": FloorSettings(read_latency_ns=3 * MS)}
    tiers = {"nvme": TierSettings(256, 1, 8, **slow), "host": TierSettings(24, 1, 8)}
    handles: list[RequestHandle] = []
    with Engine(fetching(data_dir, settings, op_blocks=2, **tiers), [recorded.as_emitter()]) as engine:
        stored(engine, *range(12))
        for _ in range(150):
            number, choice = int(random.integers(12)), random.random()
            if choice < 0.4:
                handles.append(engine.submit(ask(number, int(random.integers(33, 400)), int(random.integers(1, 5)))))
            elif choice < 0.7:
                engine.hint(f"s{number % 4}", ask(number, 200), int(random.integers(1, 200)) * MS)
            elif choice < 0.8 and handles:
                handles[int(random.integers(len(handles)))].cancel()
            elif choice < 0.9:
                engine.forget_hint(f"s{number % 4}")
            elif choice < 0.99:
                handles[-1].result(30) if handles else None
                engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
            else:
                engine.invalidate(Selector(tenant="default"))
                stored(engine, *range(12))
        for handle in handles:
            handle.result(30)
    statistics = engine.statistics().prefetches

    assert statistics.issued == statistics.used + statistics.wasted + statistics.cancelled
    assert statistics.issued > 0
    assert_each_ends_once(recorded)


def test_while_it_is_off_nothing_is_told_of_it(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """An engine that does not fetch ahead says nothing about it, however long requests wait."""
    engine = start_engine(tiny(data_dir, step=StepSettings(floor_ns=3 * MS)))
    for handle in [engine.submit(ask(number % 3, 25 * BLOCK)) for number in range(6)]:
        handle.result(20)

    assert [] == [event for event in recorded.events if type(event).__name__.startswith("Prefetch")]
    assert [] == [event for event in recorded.of(SwapInQueued) if event.prefetch is not None]


times = st.integers(0, 10**9)
counts = st.integers(0, 1000)
outlooks = st.builds(
    Outlook,
    left_ns=st.integers(-(10**9), 10**9),
    wait_ns=times,
    block_ns=st.integers(0, 10**7),
    left_blocks=counts,
    room_bytes=st.integers(-(10**6), 10**9),
    block_bytes=st.integers(1, 10**6),
    most_blocks=st.integers(1, 1000),
)


@given(outlook=outlooks)
def test_a_window_keeps_to_time_cap_and_need(outlook: Outlook) -> None:
    """What it allows comes in time, fits under the cap and is needed; where it allows nothing, it says why."""
    made = window(outlook)

    assert 0 <= made.blocks <= min(outlook.most_blocks, outlook.left_blocks)
    assert not made.blocks or made.blocks * outlook.block_ns <= outlook.left_ns - outlook.wait_ns
    assert not made.blocks or made.blocks * outlook.block_bytes <= outlook.room_bytes
    assert (made.limit is None) is (made.blocks > 0 or outlook.left_blocks == 0)


@given(outlook=outlooks, more=times)
def test_a_window_follows_its_causes(outlook: Outlook, more: int) -> None:
    """More time never narrows it; a longer queue, a slower link never widen it."""
    blocks = window(outlook).blocks

    assert window(replace(outlook, left_ns=outlook.left_ns + more)).blocks >= blocks
    assert window(replace(outlook, wait_ns=outlook.wait_ns + more)).blocks <= blocks
    assert window(replace(outlook, block_ns=outlook.block_ns + more)).blocks <= blocks
