"""Drill: the memory of the host is taken away under an engine that decodes and fetches ahead."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from kvtrail_engine.drills.ballast import Ballast
from kvtrail_engine.engine import Engine
from kvtrail_engine.proof import settle, sink
from kvtrail_engine.request import Outcome
from kvtrail_engine.settings import EngineSettings, PrefetchSettings, StepSettings
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    Evicted,
    PrefetchIssued,
    PrefetchSkipped,
    RequestPreempted,
    SwapInLoaded,
)
from kvtrail_schema.reasons import EvictReason, PrefetchSkipReason

from kvtrail_cli.drill.safety_log import EventLog, answer, ask, logged, result_of, small_engine
from kvtrail_cli.drill.safety_shapes import SafetyDrill

_MS: Final = 1_000_000
_BELOW: Final = range(4)
_ON_HOST: Final = range(4, 8)
_ACTIVE_TOKENS: Final = 160
_PATIENCE_S: Final = 20.0
_SOON_NS: Final = 500 * _MS
_TICK_S: Final = 0.02


def host_memory_pressure(folder: Path) -> SafetyDrill:
    """All of the host's places go: what lies there moves down, nothing more is fetched into it, and decode goes on."""
    ballast = Ballast("host-pressure", {Tier.HOST: 1.0})
    with logged(folder) as log, Engine(_settings(folder), log.observers) as engine:
        outputs = [answer(engine, ask(number)).output for number in _BELOW]
        sink(engine, Tier.NVME)
        outputs += [answer(engine, ask(number)).output for number in _ON_HOST]
        healthy_seq = log.events[-1].seq
        active = engine.submit(replace(ask(99, 1), output_tokens=_ACTIVE_TOKENS))
        _take_the_host(engine, ballast)
        taken_seq = log.events[-1].seq
        engine.hint("session", ask(_BELOW[0]), _SOON_NS)
        _until(lambda: log.first(PrefetchSkipped) is not None)
        again = [answer(engine, ask(number)).output for number in (*_BELOW, *_ON_HOST)]
        decoded = active.result(_PATIENCE_S)
        freed_seq = log.events[-1].seq
        ballast.end(engine)
        is_back = _is_fetched_again(engine, log)
    moved = log.first(Evicted, lambda event: event.seq > healthy_seq and event.reason is EvictReason.DEMOTION)
    skipped = log.first(PrefetchSkipped, lambda event: event.reason is PrefetchSkipReason.NO_ROOM)
    loaded = log.first(SwapInLoaded, lambda event: event.seq > taken_seq and (event.src, event.dst) == (Tier.NVME, Tier.GPU))
    ahead = [event for event in log.of(PrefetchIssued) if taken_seq < event.seq <= freed_seq]
    found = {
        "what lay on host moved down": moved is not None,
        "nothing is fetched ahead meanwhile, and why is told": skipped is not None and not ahead,
        "stored blocks are read from below, and answers are the same": loaded is not None and outputs == again,
        "active decode goes on": decoded.outcome is Outcome.FINISHED and not log.of(RequestPreempted),
        "fetching ahead goes on once there is room": is_back,
    }
    expected = "no new prefetch, active decode goes on, what lay there is read from below"
    return result_of("host-memory-pressure", expected, found, (moved, skipped, loaded), log)


def _settings(folder: Path) -> EngineSettings:
    """Fetches ahead, into host alone; a step takes long enough for decode to last."""
    prefetch = PrefetchSettings(window=8, interval_ns=_MS, gpu_reserve_slots=1_000, host_share=1.0)
    return replace(small_engine(folder), prefetch=prefetch, step=StepSettings(floor_ns=4 * _MS))


def _until(is_so: Callable[[], bool]) -> bool:
    """Wait for something, a while; whether it came."""
    until_s = time.monotonic() + _PATIENCE_S
    while not is_so() and time.monotonic() < until_s:
        time.sleep(_TICK_S)
    return is_so()


def _take_the_host(engine: Engine, ballast: Ballast) -> None:
    """Take every place of the host, as its blocks move down; then nothing lies on the gpu either."""

    def is_taken() -> bool:
        ballast.tick(engine, 0.0)
        pool = engine.statistics().pools[Tier.HOST]
        return pool.free == pool.copies == 0

    ballast.begin(engine)
    _until(is_taken)
    settle(engine)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))


def _is_fetched_again(engine: Engine, log: EventLog) -> bool:
    """Whether a session that is announced now is fetched for."""
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    engine.hint("later", ask(_BELOW[1]), _SOON_NS)
    count = len(log.of(PrefetchIssued))
    return _until(lambda: len(log.of(PrefetchIssued)) > count)
