"""What is fetched ahead into host: from where, for how long it stays, and how much of host it may take."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from kvtrail_engine.engine import Engine
from kvtrail_engine.identity.selector import Selector
from kvtrail_engine.proof import settle, sink
from kvtrail_engine.settings import PrefetchSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Path as Way
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import PrefetchIssued, PrefetchReady, PrefetchSkipped, PrefetchUsed, PrefetchWasted, SwapInLoaded
from kvtrail_schema.lifecycle import fold
from kvtrail_schema.reasons import PrefetchSkipReason, PrefetchWasteReason

from tests.engine.conftest import StartEngine
from tests.engine.engines import BLOCK, ask, tiny
from tests.redis_server import redis_server, remote_of

MS = 1_000_000
ON = PrefetchSettings(window=64, gpu_reserve_slots=1000)
HOST = TierSettings(slots=12)


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, at most ten seconds."""
    deadline_s = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline_s, "it does not come"
        time.sleep(0.002)


def stored(engine: Engine, tier: Tier, *numbers: int) -> None:
    """Have prompts of five blocks on one tier alone."""
    for number in numbers:
        engine.submit(ask(number)).result(10)
        settle(engine)
        sink(engine, tier)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))


def on_host(engine: Engine, number: int) -> int:
    """How many of a prompt's blocks lie on host."""
    blocks = engine.blocks_of(ask(number))
    return engine.ask(lambda: sum(engine.context.host.find(block.id) is not None for block in blocks))


def is_on_host(engine: Engine, number: int) -> bool:
    """Whether all of a prompt's blocks lie on host."""
    return on_host(engine, number) == 5


def press(engine: Engine) -> None:
    """Store so much that host has to let go of everything that may leave, twice over."""
    for number in range(100, 106):
        engine.submit(ask(number)).result(10)
        settle(engine)


@pytest.mark.parametrize("is_late", [False, True])
def test_what_was_fetched_stays_until_it_is_used_or_late(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter, is_late: bool
) -> None:
    """Whatever wants room on host, blocks that were fetched for a session wait there for it; past its deadline they do not."""
    slack_ns = 1 if is_late else 60_000 * MS
    engine = start_engine(tiny(data_dir, host=HOST, host_low_slots=4, prefetch=replace(ON, slack_ns=slack_ns)))
    stored(engine, Tier.NVME, 1)
    engine.hint("s", ask(1), 300 * MS)
    until(lambda: len(recorded.of(PrefetchReady)) == 5)
    if is_late:
        time.sleep(0.35)
    press(engine)
    near = on_host(engine, 1)
    after = engine.submit(ask(1, 7 * BLOCK)).result(10)
    settle(engine)
    wasted = {event.reason for event in recorded.of(PrefetchWasted)}

    assert (0 if is_late else 5) == near
    assert ({Tier.NVME: 5} if is_late else {Tier.HOST: 5}) == after.restored
    assert (0 if is_late else 5) == len(recorded.of(PrefetchUsed))
    assert ({PrefetchWasteReason.EVICTED_BEFORE_USE} if is_late else set()) == wasted
    assert 0 == engine.ask(lambda: sum(copy.refs for copy in engine.context.host.copies()))
    assert () == fold(recorded.events).violations


def test_what_was_used_may_leave(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """A block that its request has read is like any other: it leaves host for others, and no waste is told."""
    engine = start_engine(tiny(data_dir, host=HOST, host_low_slots=4, prefetch=replace(ON, slack_ns=60_000 * MS)))
    stored(engine, Tier.NVME, 1)
    engine.hint("s", ask(1), 300 * MS)
    until(lambda: len(recorded.of(PrefetchReady)) == 5)
    engine.submit(ask(1, 7 * BLOCK)).result(10)
    press(engine)

    assert 0 == on_host(engine, 1)
    assert [] == recorded.of(PrefetchWasted)


def test_an_invalidation_takes_what_waits(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """Being kept for a session does not keep a block from an invalidation; its slot is free afterwards, once."""
    engine = start_engine(tiny(data_dir, host=HOST, host_low_slots=4, prefetch=replace(ON, slack_ns=60_000 * MS)))
    stored(engine, Tier.NVME, 1)
    engine.hint("s", ask(1), 300 * MS)
    until(lambda: len(recorded.of(PrefetchReady)) == 5)
    came = engine.invalidate(Selector(tenant="default"))
    pool = engine.statistics().pools[Tier.HOST]

    assert 0 == came.unfinished
    assert 5 == came.copies[Tier.HOST]
    assert 12 == pool.free == pool.slots
    assert () == fold(recorded.events).violations


def test_host_keeps_a_share_for_others(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """Sessions that are announced and never come cannot fill host: past its share nothing is fetched, and that is told."""
    engine = start_engine(tiny(data_dir, host=HOST, host_low_slots=0, prefetch=replace(ON, slack_ns=60_000 * MS)))
    stored(engine, Tier.NVME, 1, 2)
    for number in (1, 2):
        engine.hint(f"s{number}", ask(number), 300 * MS)
    until(lambda: PrefetchSkipReason.NO_ROOM in {event.reason for event in recorded.of(PrefetchSkipped)})
    settle(engine)

    assert 6 == len(recorded.of(PrefetchIssued))


def test_what_was_fetched_for_nobody_is_the_first_to_leave(data_dir: Path, start_engine: StartEngine) -> None:
    """On a host full of what lies nowhere else, the next of a session's documents takes the last one's place."""
    engine = start_engine(tiny(data_dir, host=TierSettings(slots=25), host_low_slots=0, prefetch=ON))
    stored(engine, Tier.NVME, 1, 2)
    for number in range(100, 104):
        engine.submit(ask(number)).result(10)
        settle(engine)
    for number in (1, 2):
        engine.hint("s", ask(number), 300 * MS)
        until(partial(is_on_host, engine, number))
        settle(engine)

    assert 0 == on_host(engine, 1)
    assert [5] * 4 == [on_host(engine, number) for number in range(100, 104)]


def test_what_lies_on_the_remote_is_fetched_to_host(
    data_dir: Path, private_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """A hint brings a prefix from the remote to host; its request loads it from there, with the bits that were computed."""
    with redis_server(private_dir / "redis") as server:
        settings = tiny(data_dir, nvme=TierSettings(slots=0), remote=remote_of(server), prefetch=ON)
        engine = start_engine(settings)
        first = engine.submit(ask(1, keep_logits=True)).result(10)
        stored(engine, Tier.REMOTE, 1)
        engine.hint("s", ask(1), 2_000 * MS)
        until(lambda: len(recorded.of(PrefetchReady)) == 5)
        after = engine.submit(ask(1, keep_logits=True)).result(10)
        settle(engine)
        engine.close()
    reads = [event for event in recorded.of(SwapInLoaded) if event.prefetch is not None]

    assert {(Tier.REMOTE, Tier.HOST, Way.SOCKET)} == {(event.src, event.dst, event.path) for event in reads}
    assert {Tier.HOST: 4} == after.restored
    assert first.first_logits is not None
    assert after.first_logits is not None
    assert first.first_logits.tobytes() == after.first_logits.tobytes()
    assert 4 == len(recorded.of(PrefetchUsed))
    assert () == fold(recorded.events).violations
