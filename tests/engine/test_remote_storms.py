"""Random runs over every tier while the remote comes and goes: right answers, legal lives, nothing left over."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from kvtrail_engine.engine import Engine
from kvtrail_engine.modes import Mode, mode_settings
from kvtrail_engine.proof import settle
from kvtrail_engine.redis_process import RedisProcess
from kvtrail_engine.request import Outcome, RequestSpec
from kvtrail_engine.settings import EngineSettings, StepSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import BackpressureOn, SwapInLoaded
from kvtrail_schema.lifecycle import fold
from kvtrail_schema.reasons import BackpressureReason

from tests.engine.engines import ask, tiny
from tests.redis_server import kill, pause, redis_server, remote_of, resume

REQUESTS = 120


def small(data_dir: Path, server: RedisProcess) -> EngineSettings:
    """Little room on every tier, so that blocks move all the time."""
    return tiny(
        data_dir,
        remote=remote_of(server, timeout_ns=60_000_000, cooldown_ns=20_000_000, failures_to_open=2),
        host=TierSettings(slots=24),
        nvme=TierSettings(slots=40, workers=2),
        host_low_slots=12,
        nvme_low_slots=20,
        step=StepSettings(budget_tokens=96),
    )


def specs(seed: int) -> list[RequestSpec]:
    """Random prompts, with prefixes in common."""
    random = np.random.default_rng(seed)
    return [
        ask(int(random.integers(14)), int(random.integers(33, 320)), int(random.integers(1, 5)), keep_logits=True)
        for _ in range(REQUESTS)
    ]


def trouble(server: RedisProcess, seed: int, stop: threading.Event) -> None:
    """Stop the server, wake it, kill it, start it, at random moments; it is awake in the end."""
    random = np.random.default_rng(seed)
    while not stop.wait(random.uniform(0.05, 0.2)):
        if random.random() < 0.5:
            pause(server)
            stop.wait(random.uniform(0.05, 0.3))
            resume(server)
        else:
            kill(server)
            stop.wait(random.uniform(0.0, 0.1))
            server.relaunch()


@pytest.mark.parametrize("seed", range(2 if os.environ.get("KVTRAIL_LONG") else 1))
def test_answers_are_right_while_the_remote_comes_and_goes(
    data_dir: Path, private_dir: Path, recorded: CollectingEmitter, seed: int
) -> None:
    """Every request is answered as an engine without any tier answers it, bit for bit, or was called off by its sender."""
    wanted = specs(seed)
    with Engine(mode_settings(tiny(data_dir / "alone"), Mode.GPU_ONLY)) as alone:
        expected = [alone.submit(spec).result(30) for spec in wanted]
    with redis_server(private_dir / "redis") as server, Engine(small(data_dir, server), [recorded.as_emitter()]) as engine:
        stop = threading.Event()
        troubled = threading.Thread(target=trouble, args=(server, seed, stop), name="trouble")
        troubled.start()
        handles = [engine.submit(spec) for spec in wanted]
        for handle in handles[::9]:
            handle.cancel()
        answers = [handle.result(60) for handle in handles]
        again = [engine.submit(spec).result(60) for spec in wanted[:40]]
        stop.set()
        troubled.join()
        settle(engine)
        pools = engine.statistics().pools
    folded = fold(recorded.events)
    pairs = [*zip(expected, answers, strict=True), *zip(expected, again, strict=False)]
    finished = [(one, other) for one, other in pairs if other.outcome is Outcome.FINISHED]

    assert len(finished) > REQUESTS
    assert Tier.REMOTE in {event.src for event in recorded.of(SwapInLoaded)}
    assert BackpressureReason.REMOTE_LOST in {event.reason for event in recorded.of(BackpressureOn)}
    assert all(one.output == other.output for one, other in finished)
    assert all(one.first_logits is not None and np.array_equal(one.first_logits, o.first_logits) for one, o in finished)  # type: ignore[arg-type]  # None would not be equal
    assert folded.violations == ()
    assert pools[Tier.NVME].copies
    assert [copy for copy in folded.copies.values() if copy.refs] == []
    assert all(pool.slots == pool.free + pool.evictable for pool in pools.values())
