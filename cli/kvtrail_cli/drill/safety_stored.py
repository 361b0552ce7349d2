"""Drills of what is stored, and of a slow or full disk."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from kvtrail_engine.engine import Engine
from kvtrail_engine.identity.selector import Selector
from kvtrail_engine.proof import sink
from kvtrail_engine.request import Outcome
from kvtrail_engine.settings import FloorSettings, TierSettings
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    AdmissionLimited,
    BackpressureOff,
    BackpressureOn,
    BlockCreated,
    Evicted,
    Invalidated,
    InvalidationRequested,
    ManifestDeclared,
    OrphanFound,
    OrphanRemoved,
    PrefixHit,
    RequestPreempted,
    SwapInLoaded,
    SwapOutFailed,
    SwapOutQueued,
)
from kvtrail_schema.identity import Namespace
from kvtrail_schema.reasons import AdmissionReason, BackpressureReason, InvalidateReason, OrphanReason, SwapOutFailReason

from kvtrail_cli.drill.safety_log import EventLog, answer, ask, logged, result_of, small_engine
from kvtrail_cli.drill.safety_shapes import SafetyDrill

MS: Final = 1_000_000
_SLOW: Final = FloorSettings(read_latency_ns=15 * MS, write_latency_ns=15 * MS)
_INTO_PAYLOAD_BYTES: Final = 6_144
_DISK_BYTES: Final = 512 * 1024
_SECRET: Final = Namespace(tenant="a", access_group="g1")


def nvme_queue_full(folder: Path) -> SafetyDrill:
    """A slow disk and a short queue: fewer prompts are taken in, what decodes goes on, and the limit goes up again."""
    nvme = TierSettings(slots=256, queue_ops=2, floor=_SLOW)
    settings = replace(small_engine(folder), nvme=nvme, op_blocks=1, host_low_slots=20)
    with logged(folder) as log, Engine(settings, log.observers) as engine:
        handles = [engine.submit(ask(number, 4)) for number in range(30)]
        outcomes = {handle.result(60).outcome for handle in handles}
        answer(engine, ask(99))
    began = log.first(BackpressureOn, lambda event: event.reason is BackpressureReason.DISK_QUEUE)
    limited = log.first(AdmissionLimited, lambda event: event.reason is AdmissionReason.BACKPRESSURE)
    touched = log.first(SwapOutQueued, lambda event: event.dst is Tier.NVME)
    found = {
        "the full queue is told": began is not None,
        "admission is lowered, and lifted again": limited is not None and _has_cleared(log),
        "no decode loses its place": not log.of(RequestPreempted),
        "every request is answered": outcomes == {Outcome.FINISHED},
    }
    return result_of(
        "nvme-queue-full",
        "admission is lowered, active decode goes on, the limit is lifted",
        found,
        (touched, began, limited),
        log,
    )


def _has_cleared(log: EventLog) -> bool:
    """Whether the limit went up again, and the layer ended pushing back."""
    lifted = log.first(AdmissionLimited, lambda event: event.reason is AdmissionReason.CLEARED)
    return lifted is not None and bool(log.of(BackpressureOff))


def process_restart(folder: Path) -> SafetyDrill:
    """The engine ends and begins anew on its files: what it stored is taken in, and read, and answers are the same."""
    with Engine(small_engine(folder)) as engine:
        before = answer(engine, ask(1))
        sink(engine, Tier.NVME)
    with logged(folder) as log, Engine(small_engine(folder), log.observers) as engine:
        after = answer(engine, ask(1))
    taken = log.first(BlockCreated, lambda event: event.tier is Tier.NVME)
    loaded = log.first(SwapInLoaded, lambda event: event.src is Tier.NVME)
    found = {
        "stored blocks are taken in and told": taken is not None,
        "they are read": after.restored.get(Tier.NVME, 0) > 0 and loaded is not None,
        "the answer is the same": before.output == after.output,
    }
    return result_of(
        "process-restart", "what was stored is found, read, and right", found, (log.first(ManifestDeclared), taken, loaded), log
    )


def partial_write(folder: Path) -> SafetyDrill:
    """Bytes of a record are wrong at the start: it is found by its checksum, told, removed, and its block is computed."""
    with Engine(small_engine(folder)) as engine:
        before = answer(engine, ask(1))
        sink(engine, Tier.NVME)
    _spoil(folder / "nvme")
    with logged(folder) as log, Engine(small_engine(folder), log.observers) as engine:
        after = answer(engine, ask(1))
    torn = log.first(OrphanFound, lambda event: event.reason is OrphanReason.TORN)
    removed = log.first(OrphanRemoved, lambda event: event.reason is OrphanReason.TORN)
    hit = {event.block for event in log.of(PrefixHit)}
    found = {
        "the torn record is found and removed": torn is not None and removed is not None,
        "nobody reads it": torn is not None and torn.block not in hit,
        "the answer is the same": before.output == after.output,
    }
    return result_of(
        "partial-write",
        "incomplete blocks are cleaned up and recomputed",
        found,
        (log.first(ManifestDeclared), torn, removed),
        log,
    )


def _spoil(folder: Path) -> None:
    """Overwrite some bytes inside the payload of the first record: behind the file's header and its own."""
    with min(folder.iterdir()).open("r+b") as stream:
        stream.seek(_INTO_PAYLOAD_BYTES)
        stream.write(b"\xa5" * 64)


def permission_revoked(folder: Path) -> SafetyDrill:
    """An access group loses its right: every copy goes, on every tier, and no later lookup finds one."""
    with logged(folder) as log, Engine(small_engine(folder), log.observers) as engine:
        spec = ask(1, namespace=_SECRET)
        before = answer(engine, spec)
        sink(engine, Tier.NVME)
        old = {block.id for block in engine.blocks_of(spec)}
        done = engine.invalidate(Selector(access_group="g1"), InvalidateReason.PERMISSION_REVOKED)
        revoked_seq = log.events[-1].seq
        after = answer(engine, spec)
    told = log.of(Invalidated)
    found = {
        "every copy is told as gone": {event.block for event in told} == old and not done.unfinished,
        "no later lookup finds one": not [hit for hit in log.of(PrefixHit) if hit.seq > revoked_seq and hit.block in old],
        "the answer is computed anew, and the same": not after.restored and before.output == after.output,
    }
    ends = (told[0], told[-1]) if told else (None, None)
    return result_of(
        "permission-revoked", "nothing of it is ever read again", found, (log.first(InvalidationRequested), *ends), log
    )


def model_version_switch(folder: Path) -> SafetyDrill:
    """Another model begins on the files of the one before: it reads nothing of them."""
    with Engine(small_engine(folder, seed=0)) as engine:
        answer(engine, ask(1))
        sink(engine, Tier.NVME)
    with logged(folder) as log, Engine(small_engine(folder, seed=1), log.observers) as engine:
        after = answer(engine, ask(1))
    orphan, removed = log.first(OrphanFound), log.first(OrphanRemoved)
    found = {
        "the old blocks are found and removed": orphan is not None and removed is not None,
        "none is read": not log.of(SwapInLoaded) and not after.restored,
        "the request is answered": after.outcome is Outcome.FINISHED,
    }
    expected = "no KV of the old version is read in the new one"
    return result_of("model-version-switch", expected, found, (log.first(ManifestDeclared), orphan, removed), log)


def disk_full(folder: Path) -> SafetyDrill:
    """Files may not grow any more: writes fail and say so, the tier goes on with its places, and answers stay right."""
    with logged(folder) as log, _small_files(), Engine(small_engine(folder), log.observers) as engine:
        rounds = [[answer(engine, ask(number, 9)).output for number in range(14)] for _ in range(2)]
    failed = log.first(SwapOutFailed, lambda event: event.reason is SwapOutFailReason.NO_SPACE)
    touched = log.first(SwapOutQueued, lambda event: event.dst is Tier.NVME)
    evicted = log.first(Evicted, lambda event: event.tier is Tier.NVME)
    found = {
        "the failed write says why": failed is not None,
        "old blocks make room for new ones": evicted is not None,
        "the answers are the same": rounds[0] == rounds[1],
    }
    return result_of(
        "disk-full", "writes fail by name, the tier goes on, answers stay right", found, (touched, failed, evicted), log
    )


@contextmanager
def _small_files() -> Iterator[None]:
    """A limit on every file that this process writes, for a while."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_DISK_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
