"""What an invalidation could not erase is erased later, by itself, once; nobody reads it meanwhile."""

import os
import time
from collections import Counter
from pathlib import Path

from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import StorageError
from kvtrail_engine.identity.selector import Selector
from kvtrail_engine.proof import settle, sink
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_engine.tiers.segment_file import segment_path
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Error, Invalidated, SwapInQueued
from kvtrail_schema.lifecycle import fold
from kvtrail_schema.reasons import ErrorReason, InvalidateReason

from tests.engine.conftest import StartEngine
from tests.engine.engines import ask, tiny
from tests.engine.records import stored_slots, take


def on_nvme(engine: Engine, *numbers: int) -> None:
    """Have prompts on nvme alone."""
    for number in numbers:
        engine.submit(ask(number)).result(10)
    settle(engine)
    sink(engine, Tier.NVME)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))


def reopen(engine: Engine, flags: int) -> None:
    """Put another descriptor of the first segment in the place of the engine's own."""
    store = engine.nvme.store
    made = os.open(segment_path(engine.settings.data_dir / "nvme", 0), flags | store.io.flags | os.O_CLOEXEC)
    os.dup2(made, store._files[0])
    os.close(made)


def test_a_disk_that_refused_is_asked_again(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """The invalidation says what is left, nobody reads it, each attempt that fails is told, and the last is the evidence."""
    engine = start_engine(tiny(data_dir, erase_retry_ns=10_000_000))
    on_nvme(engine, 1)
    slots = stored_slots(engine, ask(1))
    reopen(engine, os.O_RDONLY)
    came = engine.invalidate(Selector(tenant="default"))
    again = engine.submit(ask(1)).result(10)
    while len(recorded.of(Error)) < 3:
        time.sleep(0.005)
    told_early = [event for event in recorded.of(Invalidated) if event.tier is Tier.NVME]
    unerased = engine.statistics().unerased
    reopen(engine, os.O_RDWR)
    while engine.statistics().unerased:
        time.sleep(0.005)
    gone = [(event.cause, event.slot) for event in recorded.of(Invalidated) if event.tier is Tier.NVME]

    assert 5 == came.unfinished == unerased
    assert {} == again.restored
    assert [] == told_early
    assert {ErrorReason.IO} == {event.reason for event in recorded.of(Error)}
    assert [] == recorded.of(SwapInQueued)
    assert Counter((came.event, slot) for slot in slots) == Counter(gone)
    assert all(not any(take(engine, slot)) for slot in slots)
    assert () == fold(recorded.events).violations


def test_what_is_being_erased_is_nobody_elses_to_erase(data_dir: Path, start_engine: StartEngine) -> None:
    """Of two who erase at once, each has copies of its own: a slot that is free again is never erased by the slower one."""
    engine = start_engine(tiny(data_dir))
    on_nvme(engine, 1, 2)
    invalidator = engine._invalidator
    selected = Selector(tenant="default").hashed(engine.lifecycle.key)
    engine._journal.invalidate(selected)
    engine.ask(lambda: invalidator.begin(selected, "{}", InvalidateReason.MANUAL))
    mine, theirs = engine.ask(invalidator.claim), engine.ask(invalidator.claim)
    engine.ask(lambda: invalidator.finish(mine, {Tier.NVME: StorageError("no")}))
    again = engine.ask(invalidator.claim)
    engine.ask(lambda: invalidator.finish(again, invalidator.erase(again)))

    assert 10 == len(mine) == len(again)
    assert [] == theirs
    assert 0 == engine.statistics().unerased
