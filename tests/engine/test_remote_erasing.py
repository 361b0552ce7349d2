"""What was invalidated is gone from the remote too: at once, or as soon as the remote is back."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from kvtrail_engine.engine import Engine
from kvtrail_engine.identity.selector import Selector
from kvtrail_engine.proof import settle, sink
from kvtrail_engine.redis_process import RedisProcess
from kvtrail_engine.settings import TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Invalidated, SwapInQueued
from kvtrail_schema.lifecycle import fold

from tests.engine.conftest import StartEngine
from tests.engine.engines import ask, tiny
from tests.redis_server import pause, redis_server, remote_of, resume


@pytest.fixture
def server(private_dir: Path) -> Iterator[RedisProcess]:
    """A server of the test's own."""
    with redis_server(private_dir / "redis") as running:
        yield running


def records(server: RedisProcess) -> int:
    """How many records the server holds."""
    with redis.Redis(port=server.port, password=server.password_file.read_text()) as client:
        return len([key for key in client.scan_iter("kvtrail:*") if key.rsplit(b":", 1)[1].isdigit()])


def test_an_engine_that_ends_leaves_nothing_on_the_remote(data_dir: Path, server: RedisProcess) -> None:
    """Nobody could use its records any more, so they do not wait for their expiry."""
    with Engine(tiny(data_dir, remote=remote_of(server), nvme=TierSettings(slots=0))) as engine:
        engine.submit(ask(1, 4 * 32 + 1)).result(10)
        settle(engine)
        sink(engine, Tier.REMOTE)
        during = records(server)

    assert 4 == during
    assert 0 == records(server)


@pytest.mark.parametrize("way", ["there", "given up", "silent"])
def test_invalidated_is_erased_from_the_remote(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter, server: RedisProcess, way: str
) -> None:
    """Nobody reads it from the moment of the invalidation; its bytes go then, or once the remote answers again, whether the
    engine had given it up meanwhile or not.
    """
    is_lost = way != "there"
    remote = remote_of(server, failures_to_open=1 if way == "given up" else 1000)
    engine = start_engine(tiny(data_dir, remote=remote, nvme=TierSettings(slots=0), erase_retry_ns=20_000_000))
    for tenant in ("a", "b"):
        engine.submit(ask(1, 4 * 32 + 1, tenant=tenant)).result(10)
    settle(engine)
    sink(engine, Tier.REMOTE)
    before = records(server)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    if is_lost:
        pause(server)
        engine.submit(ask(1, 4 * 32 + 1, tenant="b")).result(10)
    done = engine.invalidate(Selector(tenant="a"))
    if is_lost:
        resume(server)
    until_s = time.monotonic() + 10
    while records(server) != 4 or engine.statistics().unerased or engine.statistics().pressure.on:
        assert time.monotonic() < until_s, "the records stay"
        time.sleep(0.01)
    queued = len(recorded.of(SwapInQueued))
    again = engine.submit(ask(1, 4 * 32 + 1, tenant="a")).result(10)
    settle(engine)
    pool = engine.statistics().pools[Tier.REMOTE]

    assert before == 8
    assert done.copies[Tier.REMOTE] == 4
    assert done.unfinished == (4 if is_lost else 0)
    assert again.restored == {}
    assert queued == len(recorded.of(SwapInQueued))
    assert [done.event] * 4 == [event.cause for event in recorded.of(Invalidated) if event.tier is Tier.REMOTE]
    assert pool.slots == pool.free + pool.evictable
    assert fold(recorded.events).violations == ()
