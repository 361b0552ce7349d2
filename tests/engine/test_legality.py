"""Whatever is asked of an engine, what it tells is a legal life of every copy, and nothing is left over."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kvtrail_engine.drills.base import Drill
from kvtrail_engine.drills.guest_bursts import nvme_queue, prefetch_flood, write_back_flood
from kvtrail_engine.drills.timer import ScheduledDrill
from kvtrail_engine.engine import Engine
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.proof import settle
from kvtrail_engine.run import run_load
from kvtrail_engine.settings import StepSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    AttentionRead,
    FaultInjected,
    RequestArrived,
    SwapInLoaded,
    SwapInQueued,
    SwapOutQueued,
    SwapOutWritten,
)
from kvtrail_schema.lifecycle import CopyState, fold

from tests.engine.engines import ask, tiny


@pytest.mark.parametrize("seed", range(2))
def test_every_copy_lives_a_legal_life(data_dir: Path, recorded: CollectingEmitter, seed: int) -> None:
    """Random prompts, shared prefixes, cancellations: no fact follows where it may not, and the pools agree with it."""
    random = np.random.default_rng(seed)
    with Engine(tiny(data_dir, step=StepSettings(budget_tokens=96)), [recorded.as_emitter()]) as engine:
        handles = [
            engine.submit(ask(int(random.integers(14)), int(random.integers(1, 320)), int(random.integers(1, 6))))
            for _ in range(150)
        ]
        for handle in random.choice(np.array(handles), 30):
            handle.cancel()
        for handle in handles:
            handle.result(30)
        settle(engine)
        pools = engine.statistics().pools
    folded = fold(recorded.events)
    readable = Counter(key.tier for key, copy in folded.copies.items() if copy.state is CopyState.READABLE)

    assert folded.violations == ()
    assert {tier: pool.copies for tier, pool in pools.items()} == {tier: readable[tier] for tier in pools}
    assert [copy for copy in folded.copies.values() if copy.refs] == []
    assert all(pool.slots == pool.free + pool.evictable for pool in pools.values())


def test_every_op_that_was_queued_has_ended(data_dir: Path, recorded: CollectingEmitter) -> None:
    """No transfer is left open by an engine that was closed in order."""
    with Engine(tiny(data_dir), [recorded.as_emitter()]) as engine:
        for handle in [engine.submit(ask(number % 12, 9 * 32)) for number in range(60)]:
            handle.result(30)
    begun = Counter((event.op, event.block) for event in recorded.of(SwapInQueued))
    begun.update((event.op, event.block) for event in recorded.of(SwapOutQueued))
    ended = Counter((event.op, event.block) for event in recorded.of(SwapInLoaded))
    ended.update((event.op, event.block) for event in recorded.of(SwapOutWritten))

    assert begun == ended
    assert set(begun.values()) == {1}


def test_a_copy_is_read_once_by_a_request(data_dir: Path, recorded: CollectingEmitter) -> None:
    """The first read of a copy is told, and no later one."""
    with Engine(tiny(data_dir), [recorded.as_emitter()]) as engine:
        for handle in [engine.submit(ask(number % 12, 9 * 32, 8)) for number in range(40)]:
            handle.result(30)
    reads = Counter((event.req, event.block, event.slot) for event in recorded.of(AttentionRead))

    assert set(reads.values()) == {1}
    assert {event.tier for event in recorded.of(AttentionRead)} == {Tier.GPU}


@pytest.mark.parametrize("make", [nvme_queue, prefetch_flood, write_back_flood])
def test_a_flood_is_legal_too(data_dir: Path, recorded: CollectingEmitter, make: Callable[[int, int, float], Drill]) -> None:
    """The guest's copies are told like everybody's."""
    drill = ScheduledDrill(make(1, 32, 0.1), 100_000_000, 500_000_000)
    arrivals = [Arrival(number * 10_000_000, ask(number % 9, 9 * 32, 1)) for number in range(60)]
    with Engine(tiny(data_dir, guest_slots=32), [recorded.as_emitter()]) as engine:
        run_load(engine, arrivals, drill=drill)
    (guest,) = (event.req for event in recorded.of(RequestArrived) if event.text == "bulk-neighbour-0")
    begun_ns = recorded.of(FaultInjected)[0].t_ns
    ops: list[SwapInLoaded | SwapOutWritten] = [*recorded.of(SwapInLoaded), *recorded.of(SwapOutWritten)]

    assert len([event for event in ops if event.req == guest and event.t_ns > begun_ns]) > 32
    assert fold(recorded.events).violations == ()
