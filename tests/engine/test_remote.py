"""An engine on a real remote: what comes back is right, and whatever the remote does, nobody waits for ever."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import SettingsError
from kvtrail_engine.proof import prove, settle, sink
from kvtrail_engine.redis_process import RedisProcess
from kvtrail_engine.request import Outcome, RequestResult
from kvtrail_engine.settings import EngineSettings, FloorSettings, LostPolicy, RemoteSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_engine.tiers.breaker import BreakerState
from kvtrail_schema.enums import Path as Way
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    BackpressureOff,
    BackpressureOn,
    Error,
    Evicted,
    PrefillChunk,
    PrefixMiss,
    RequestRejected,
    SwapInFailed,
    SwapInLoaded,
    SwapInQueued,
    SwapOutWritten,
)
from kvtrail_schema.lifecycle import fold
from kvtrail_schema.reasons import BackpressureReason, EvictReason, MissReason, PrefillReason, RejectReason

from tests.engine.conftest import StartEngine
from tests.engine.engines import ask, tiny
from tests.redis_server import kill, pause, redis_server, remote_of, resume

BLOCKS = 4


@pytest.fixture
def server(private_dir: Path) -> Iterator[RedisProcess]:
    """A server of the test's own: some tests kill it."""
    with redis_server(private_dir / "redis") as running:
        yield running


def below(data_dir: Path, remote: RemoteSettings, nvme_slots: int = 0) -> EngineSettings:
    """An engine whose blocks go from host to the remote, by way of nvme where it has slots."""
    return tiny(data_dir, remote=remote, nvme=TierSettings(slots=nvme_slots), gpu=TierSettings(slots=120))


def stored(engine: Engine, count: int = 3) -> list[RequestResult]:
    """The answers to some prompts whose blocks now lie on the remote alone."""
    answers = [engine.submit(ask(number, BLOCKS * 32 + 1)).result(10) for number in range(count)]
    settle(engine)
    sink(engine, Tier.REMOTE)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    return answers


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, at most ten seconds."""
    deadline_s = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline_s, "it does not come"
        time.sleep(0.01)


def is_lost(engine: Engine) -> bool:
    """Whether the engine has given the remote up for now."""
    return BackpressureReason.REMOTE_LOST in engine.statistics().pressure.on


@pytest.mark.parametrize("nvme_slots", [0, 64])
def test_restored_is_computed(data_dir: Path, start_engine: StartEngine, server: RedisProcess, nvme_slots: int) -> None:
    """Blocks that went to the remote, from host or from nvme, come back bit for bit; wrong ones would show."""
    proof = prove(start_engine(below(data_dir, remote_of(server), nvme_slots)), ask(1, 5 * 32), Tier.REMOTE)

    assert proof.holds


def test_loads_are_told_like_any_others(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter, server: RedisProcess
) -> None:
    """Tier, path, bytes, and parts that add up to the time from queued to loaded, exactly."""
    engine = start_engine(below(data_dir, remote_of(server)))
    first = stored(engine, 1)[0]
    second = engine.submit(ask(0, BLOCKS * 32 + 1)).result(10)
    settle(engine)
    queued = recorded.of(SwapInQueued)[0]
    loaded = recorded.of(SwapInLoaded)
    head = loaded[0]
    parts = [head.queue_ns, head.alloc_ns, head.submit_ns, head.io_ns, head.copy_ns, head.sync_ns]

    assert {Tier.REMOTE: BLOCKS} == second.restored
    assert first.output == second.output
    assert {(Tier.REMOTE, Tier.GPU, Way.SOCKET)} == {(event.src, event.dst, event.path) for event in loaded}
    assert {Way.SOCKET} == {event.path for event in recorded.of(SwapOutWritten) if event.dst is Tier.REMOTE}
    assert head.t_ns - queued.t_ns == sum(part or 0 for part in parts)
    assert fold(recorded.events).violations == ()


def test_room_on_nvme_is_made_by_the_remote(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter, server: RedisProcess
) -> None:
    """With a low mark on nvme, its oldest blocks move on, and none is evicted for want of room."""
    settings = replace(below(data_dir, remote_of(server), 64), nvme_low_slots=32, host_low_slots=32)
    engine = start_engine(settings)
    for number in range(30):
        engine.submit(ask(number, BLOCKS * 32 + 1)).result(10)
    settle(engine)
    pools = engine.statistics().pools

    assert pools[Tier.REMOTE].copies > 0
    assert pools[Tier.NVME].free >= 32
    assert {EvictReason.DEMOTION} == {event.reason for event in recorded.of(Evicted) if event.tier is not Tier.GPU}
    assert fold(recorded.events).violations == ()


def test_a_remote_killed_in_mid_run_costs_a_recompute(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter, server: RedisProcess
) -> None:
    """Every answer comes, and is right; the loss is told, and is the cause of the misses; then the remote is used again."""
    engine = start_engine(below(data_dir, remote_of(server, failures_to_open=1)))
    before = stored(engine)
    kill(server)
    during = [engine.submit(ask(number, BLOCKS * 32 + 1)).result(10) for number in range(3)]
    until(lambda: is_lost(engine))
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    lost = engine.submit(ask(2, BLOCKS * 32 + 1)).result(10)
    server.relaunch()
    until(lambda: not is_lost(engine))
    cleared = engine.statistics().pools[Tier.REMOTE].copies
    again = stored(engine)
    after = engine.submit(ask(0, BLOCKS * 32 + 1)).result(10)
    on, off = recorded.of(BackpressureOn), recorded.of(BackpressureOff)
    misses = [event for event in recorded.of(PrefixMiss) if event.reason is MissReason.REMOTE_INDEX]

    assert [answer.output for answer in before] == [answer.output for answer in during] == [a.output for a in again]
    assert before[2].output == lost.output
    assert after.restored == {Tier.REMOTE: BLOCKS}
    assert cleared == 0
    assert [BackpressureReason.REMOTE_LOST] == [event.reason for event in on] == [event.reason for event in off]
    assert on[0].id in {event.cause for event in misses}
    assert PrefillReason.LOAD_FAILED in {event.reason for event in recorded.of(PrefillChunk)}
    assert fold(recorded.events).violations == ()


def test_a_silent_remote_is_waited_for_once(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter, server: RedisProcess
) -> None:
    """A stopped server costs a few timeouts in all; what it holds is still there when it wakes."""
    engine = start_engine(below(data_dir, remote_of(server)))
    before = stored(engine, 6)
    pause(server)
    began_s = time.monotonic()
    try:
        handles = [engine.submit(ask(number, BLOCKS * 32 + 1)) for number in range(6)]
        during = [handle.result(10) for handle in handles]
        waited_s = time.monotonic() - began_s
        until(lambda: is_lost(engine))
    finally:
        resume(server)
    until(lambda: not is_lost(engine))
    settle(engine)
    for tier in (Tier.GPU, Tier.HOST):
        engine.ask(partial(engine.maintenance.clear, tier))
    copies = engine.statistics().pools[Tier.REMOTE].copies
    after = engine.submit(ask(5, BLOCKS * 32 + 1)).result(10)

    assert [answer.output for answer in before] == [answer.output for answer in during]
    assert waited_s < 5
    assert copies == 6 * BLOCKS
    assert after.restored == {Tier.REMOTE: BLOCKS}
    assert recorded.of(SwapInFailed)
    assert {"timeout", "io"} >= {event.reason.name.lower() for event in recorded.of(Error)}
    assert fold(recorded.events).violations == ()


def test_requests_are_rejected_where_that_is_wanted(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter, server: RedisProcess
) -> None:
    """With `reject`, a prefix out of reach ends the request with that reason; a prompt that is new is served."""
    engine = start_engine(below(data_dir, remote_of(server, on_lost=LostPolicy.REJECT)))
    stored(engine)
    kill(server)
    known = [engine.submit(ask(number, BLOCKS * 32 + 1)).result(10) for number in range(3)]
    new = engine.submit(ask(77, BLOCKS * 32 + 1)).result(10)

    assert {Outcome.REJECTED} == {answer.outcome for answer in known}
    assert new.outcome is Outcome.FINISHED
    assert {RejectReason.BACKPRESSURE} == {event.reason for event in recorded.of(RequestRejected)}
    assert fold(recorded.events).violations == ()


def test_an_expired_block_is_computed_again(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter, server: RedisProcess
) -> None:
    """What the server dropped is missed, computed, and stored anew."""
    engine = start_engine(below(data_dir, remote_of(server, expiry_ns=50_000_000)))
    before = stored(engine, 1)
    time.sleep(0.1)
    after = engine.submit(ask(0, BLOCKS * 32 + 1)).result(10)

    assert before[0].output == after.output
    assert after.restored == {}
    assert {MissReason.EXPIRED} == {event.reason for event in recorded.of(PrefixMiss) if event.req == after.req}
    assert engine.statistics().remote is not None
    assert not is_lost(engine)
    assert fold(recorded.events).violations == ()


def test_a_full_remote_queue_pushes_back(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter, server: RedisProcess
) -> None:
    """Once it is full nothing more is moved there until it is half empty; both are told, nothing is lost, nobody waits."""
    slow = TierSettings(slots=64, workers=1, queue_ops=2, floor=FloorSettings(write_latency_ns=5_000_000))
    settings = replace(below(data_dir, remote_of(server, tier=slow)), op_blocks=1)
    engine = start_engine(settings)
    for number in range(4):
        engine.submit(ask(number, BLOCKS * 32 + 1)).result(10)
    settle(engine)
    engine.ask(lambda: engine.maintenance.demote_all(Tier.HOST))
    settle(engine)
    until(lambda: not engine.statistics().pressure.on)
    changes = [e for e in recorded.events if isinstance(e, BackpressureOn | BackpressureOff)]
    queued = engine.statistics().queues[Tier.REMOTE]

    assert [BackpressureOn, BackpressureOff] == [type(event) for event in changes[:2]]
    assert {(Tier.REMOTE, BackpressureReason.REMOTE_QUEUE)} == {(event.tier, event.reason) for event in changes}
    assert 0 == queued.refused
    assert 0 < engine.statistics().pools[Tier.REMOTE].copies
    assert fold(recorded.events).violations == ()


def test_an_engine_starts_without_its_remote(data_dir: Path, recorded: CollectingEmitter, free_port: int) -> None:
    """Nobody there: it says so, serves, and does not try again with every op."""
    settings = below(data_dir, RemoteSettings(f"redis://127.0.0.1:{free_port}", timeout_ns=100_000_000))
    with Engine(settings, [recorded.as_emitter()]) as engine:
        answers = [engine.submit(ask(number, BLOCKS * 32 + 1)).result(10) for number in range(12)]
        statistics = engine.statistics().remote

    assert {Outcome.FINISHED} == {answer.outcome for answer in answers}
    assert statistics is not None
    assert BreakerState.OPEN is statistics.breaker.state
    assert [BackpressureReason.REMOTE_LOST] == [event.reason for event in recorded.of(BackpressureOn)]
    assert fold(recorded.events).violations == ()


def test_a_wrong_password_ends_the_start(data_dir: Path, server: RedisProcess, tmp_path: Path) -> None:
    """A setting that can never work is heard at once, and leaves the folder to the next engine."""
    wrong = tmp_path / "wrong"
    wrong.touch(mode=0o600)
    wrong.write_text("guess")

    with pytest.raises(SettingsError, match="password_file"):
        Engine(below(data_dir, remote_of(server, password_file=wrong)))
    with Engine(below(data_dir, remote_of(server))) as engine:
        assert engine.submit(ask(1)).result(10).outcome is Outcome.FINISHED
