"""Drills of the remote: its server stops answering, or answers with something else than what was stored."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from kvtrail_engine.engine import Engine
from kvtrail_engine.proof import sink
from kvtrail_engine.redis_process import RedisProcess, find_redis_server
from kvtrail_engine.request import RequestSpec
from kvtrail_engine.settings import EngineSettings, RemoteSettings, TierSettings
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    BackpressureOff,
    BackpressureOn,
    Evicted,
    PrefillChunk,
    RequestPreempted,
    SwapInFailed,
    SwapInLoaded,
    SwapInQueued,
)
from kvtrail_schema.identity import BlockId
from kvtrail_schema.reasons import BackpressureReason, PrefillReason, SwapInFailReason

from kvtrail_cli.drill.safety_log import EventLog, answer, ask, logged, result_of, small_engine
from kvtrail_cli.drill.safety_shapes import SafetyDrill
from kvtrail_cli.errors import PartMissing

_MS: Final = 1_000_000
_PROMPTS: Final = range(4)
_LONGEST_S: Final = 5.0
"""Four requests together: a timeout and a computation each would already be far below it."""
_PATIENCE_S: Final = 15.0
_POLL_S: Final = 0.02
_RECORD_HEAD_BYTES: Final = 512
_CUT_BYTES: Final = 100


def connector_timeout(folder: Path) -> SafetyDrill:
    """The server keeps its connections and answers nothing: loads time out, it is given up for a while, all is computed."""
    with _server(folder) as server, logged(folder) as log, Engine(_settings(folder, server), log.observers) as engine:
        before = _stored(engine, [ask(number) for number in _PROMPTS])
        server.process.send_signal(signal.SIGSTOP)
        silent_seq, began_s = log.events[-1].seq, time.monotonic()
        try:
            during = [handle.result(_PATIENCE_S).output for handle in [engine.submit(ask(number)) for number in _PROMPTS]]
            took_s = time.monotonic() - began_s
            _until(lambda: _is(log, BackpressureOn))
        finally:
            server.process.send_signal(signal.SIGCONT)
        _until(lambda: _is(log, BackpressureOff))
        _forget_above(engine)
        after = answer(engine, ask(_PROMPTS[-1]))
    touched = log.first(SwapInQueued, lambda event: event.seq > silent_seq and event.src is Tier.REMOTE)
    failed = log.first(SwapInFailed, lambda event: event.src is Tier.REMOTE and event.reason is SwapInFailReason.TIMEOUT)
    computed = log.first(PrefillChunk, lambda event: event.reason is PrefillReason.LOAD_FAILED)
    found = {
        "loads that get no answer fail by name": failed is not None,
        "their blocks are computed, and answers are the same": computed is not None and before == during,
        f"nobody waits long: all within {_LONGEST_S:g} s": took_s < _LONGEST_S and not log.of(RequestPreempted),
        "the remote is given up, and taken back once it answers": _is(log, BackpressureOn) and _is(log, BackpressureOff),
        "then it is read again": after.restored.get(Tier.REMOTE, 0) > 0 and after.output == before[-1],
    }
    expected = "a bounded wait, recompute, and the remote again once it answers"
    return result_of("connector-timeout", expected, found, (touched, failed, computed), log)


def remote_wrong_answer(folder: Path) -> SafetyDrill:
    """The server answers with flipped bytes, with half a record, and with another tenant's block: none of it is ever used."""
    specs = [ask(0), ask(1), replace(ask(2), tenant="a"), replace(ask(3), tenant="b")]
    with _server(folder) as server, logged(folder) as log, Engine(_settings(folder, server), log.observers) as engine:
        before = _stored(engine, specs)
        wrong = _falsify(engine, server, specs)
        wrong_seq = log.events[-1].seq
        after = [answer(engine, spec).output for spec in specs]
    touched = log.first(SwapInQueued, lambda event: event.seq > wrong_seq and event.src is Tier.REMOTE)
    failed = [event for event in log.of(SwapInFailed) if event.seq > wrong_seq and event.src is Tier.REMOTE]
    loaded = {event.block for event in log.of(SwapInLoaded) if event.seq > wrong_seq and event.src is Tier.REMOTE}
    dropped = log.first(Evicted, lambda event: event.tier is Tier.REMOTE and event.block in wrong and event.seq > wrong_seq)
    found = {
        "each wrong block is found out": wrong <= {event.block for event in failed},
        "another tenant's is told as such": SwapInFailReason.PERMISSION in {event.reason for event in failed},
        "none is used": not loaded & wrong,
        "they are let go, computed again, and answers are the same": dropped is not None and before == after,
    }
    expected = "no wrong byte is used; it is told, let go and computed again"
    moments = (touched, failed[0] if failed else None, dropped)
    return result_of("remote-wrong-answer", expected, found, moments, log, shows=("CORRUPT_BLOCK",))


@contextmanager
def _server(folder: Path) -> Iterator[RedisProcess]:
    """A server of the drill's own.

    Raises:
        PartMissing: none is installed.
    """
    if find_redis_server() is None:
        message = "it needs redis-server: install it (on Debian: redis-server)"
        raise PartMissing(message)
    with RedisProcess(folder / "redis") as server:
        yield server


def _settings(folder: Path, server: RedisProcess) -> EngineSettings:
    """Blocks go from host to the remote, which is given up soon and asked again soon."""
    remote = RemoteSettings(
        server.url, password_file=server.password_file, timeout_ns=200 * _MS, cooldown_ns=50 * _MS, failures_to_open=2
    )
    return replace(small_engine(folder), remote=remote, nvme=TierSettings(slots=0))


def _stored(engine: Engine, specs: list[RequestSpec]) -> list[tuple[int, ...]]:
    """The answers to some prompts whose blocks then lie on the remote alone."""
    answers = [answer(engine, spec).output for spec in specs]
    sink(engine, Tier.REMOTE)
    _forget_above(engine)
    return answers


def _forget_above(engine: Engine) -> None:
    """Let go of what lies above the remote."""
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    engine.ask(lambda: engine.maintenance.clear(Tier.HOST))


def _falsify(engine: Engine, server: RedisProcess, specs: list[RequestSpec]) -> set[BlockId]:
    """Change what the server will answer for the first block of each prompt; which blocks those are."""
    import redis  # noqa: PLC0415 - only this drill speaks to the server itself

    firsts = [engine.blocks_of(spec)[0].id for spec in specs]
    slots = [copy.slot for block in firsts if (copy := engine.context.pools[Tier.REMOTE].find(block)) is not None]
    with redis.Redis.from_url(server.url, password=server.password_file.read_text()) as client:
        keys = {slot: key for key in client.scan_iter("kvtrail:*") for slot in slots if key.endswith(f":{slot}".encode())}
        flipped, cut, one, other = (keys[slot] for slot in slots)
        client.setrange(flipped, _RECORD_HEAD_BYTES, b"\xa5" * 64)
        client.set(cut, client.get(cut)[:-_CUT_BYTES])
        client.mset({one: client.get(other), other: client.get(one)})
    return set(firsts)


def _is(log: EventLog, kind: type[BackpressureOn | BackpressureOff]) -> bool:
    """Whether it was told that the remote is lost, or is so no more."""
    return any(event.reason is BackpressureReason.REMOTE_LOST for event in log.of(kind))


def _until(is_so: Callable[[], bool]) -> None:
    """Wait for something, a while."""
    until_s = time.monotonic() + _PATIENCE_S
    while not is_so() and time.monotonic() < until_s:
        time.sleep(_POLL_S)
