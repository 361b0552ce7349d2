"""What lies on nvme outlives its engine, and whatever is wrong with it costs a recompute, never a wrong byte."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kvtrail_engine.engine import Engine
from kvtrail_engine.identity.selector import Selector
from kvtrail_engine.nvme_settings import NvmeSettings
from kvtrail_engine.proof import settle, sink
from kvtrail_engine.request import RequestResult, RequestSpec
from kvtrail_engine.settings import TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Dtype, Tier
from kvtrail_schema.events import (
    BlockCreated,
    Evicted,
    ManifestDeclared,
    NamespaceDeclared,
    OrphanFound,
    OrphanRemoved,
    PrefillChunk,
    PrefixMiss,
    SwapInFailed,
)
from kvtrail_schema.identity import NamespaceId
from kvtrail_schema.lifecycle import fold
from kvtrail_schema.reasons import EvictReason, InvalidateReason, MissReason, OrphanReason, PrefillReason, SwapInFailReason

from tests.engine.conftest import StartEngine
from tests.engine.engines import ask, tiny, told
from tests.engine.records import flip_byte, forge, lay, stored_slots, take

Spoil = Callable[[Engine, RequestSpec], object]


def on_nvme(engine: Engine, spec: RequestSpec) -> RequestResult:
    """Compute a prompt and leave its blocks on nvme alone."""
    result = engine.submit(spec).result(10)
    settle(engine)
    sink(engine, Tier.NVME)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    return result


def same_logits(first: RequestResult, second: RequestResult) -> bool:
    """Whether two answers are the same bits."""
    assert first.first_logits is not None
    assert second.first_logits is not None
    return first.output == second.output and bool((first.first_logits == second.first_logits).all())


def forged(**changes: object) -> Spoil:
    """The second block's record says something else of itself."""
    return lambda engine, spec: forge(engine, stored_slots(engine, spec)[1], **changes)


def expire(engine: Engine, spec: RequestSpec) -> None:
    """Let the wall clock pass the expiry of everything."""
    del spec
    engine.nvme.store._wall_ns = lambda: time.time_ns() + 2 * 3600 * 10**9


WAYS: dict[str, tuple[Spoil, MissReason, PrefillReason, SwapInFailReason]] = {
    "a flipped byte": (
        lambda engine, spec: flip_byte(engine, stored_slots(engine, spec)[1], 5000),
        MissReason.CHECKSUM,
        PrefillReason.CHECKSUM,
        SwapInFailReason.CHECKSUM,
    ),
    "a record of another place": (
        lambda engine, spec: lay(engine, stored_slots(engine, spec)[1], take(engine, stored_slots(engine, spec)[2])),
        MissReason.CHECKSUM,
        PrefillReason.CHECKSUM,
        SwapInFailReason.CHECKSUM,
    ),
    "another token range": (
        forged(token_start=64),
        MissReason.CHECKSUM,
        PrefillReason.CHECKSUM,
        SwapInFailReason.CHECKSUM,
    ),
    "another namespace": (
        forged(ns=NamespaceId(5)),
        MissReason.PERMISSION,
        PrefillReason.PERMISSION,
        SwapInFailReason.PERMISSION,
    ),
    "another model version": (
        forged(model_version="v2"),
        MissReason.VERSION,
        PrefillReason.VERSION,
        SwapInFailReason.VERSION,
    ),
    "another dtype": (
        forged(dtype=Dtype.FP16),
        MissReason.VERSION,
        PrefillReason.VERSION,
        SwapInFailReason.VERSION,
    ),
    "an expiry that has passed": (expire, MissReason.EXPIRED, PrefillReason.EXPIRED, SwapInFailReason.EXPIRED),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_record_that_differs_is_a_miss_with_its_reason(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter, way: str
) -> None:
    """Owner, token range, model version, place, bytes, expiry: one of them wrong, and the block is computed, and says why."""
    spoil, miss, prefill, failed = WAYS[way]
    files = NvmeSettings(expiry_ns=3600 * 10**9)
    engine, spec = start_engine(tiny(data_dir, nvme_files=files)), ask(1, keep_logits=True)
    before = on_nvme(engine, spec)
    spoil(engine, spec)
    after = engine.submit(spec).result(10)
    mine = told(recorded.events, after.req)
    engine.close()

    assert same_logits(before, after)
    assert miss in {event.reason for event in mine if isinstance(event, PrefixMiss)}
    assert prefill in {event.reason for event in mine if isinstance(event, PrefillChunk)}
    assert failed in {event.reason for event in recorded.of(SwapInFailed)}
    assert fold(recorded.events).violations == ()


def test_an_op_with_one_bad_record_loses_only_that(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """The blocks before a bad one are restored all the same, and the bad one is dropped from its place."""
    engine, spec = start_engine(tiny(data_dir)), ask(1, 9 * 32, keep_logits=True)
    before = on_nvme(engine, spec)
    flip_byte(engine, stored_slots(engine, spec)[3], 700)
    after = engine.submit(spec).result(10)
    aborted = [event.block for event in recorded.of(Evicted) if event.reason is EvictReason.ABORT]

    assert same_logits(before, after)
    assert {Tier.NVME: 3} == after.restored
    assert [engine.blocks_of(spec)[3].id] == aborted


def test_blocks_outlive_their_engine(data_dir: Path, recorded: CollectingEmitter) -> None:
    """A prompt that one engine computed is restored by the next, which tells every copy and namespace that it took in."""
    spec = ask(1, keep_logits=True)
    with Engine(tiny(data_dir)) as engine:
        before = on_nvme(engine, spec)
    with Engine(tiny(data_dir), [recorded.as_emitter()]) as engine:
        after = engine.submit(spec).result(10)
        statistics = engine.statistics().nvme_files
    taken_in = [event for event in recorded.of(BlockCreated) if event.tier is Tier.NVME]
    declared = {event.ns for event in recorded.of(NamespaceDeclared)}

    assert same_logits(before, after)
    assert {Tier.NVME: 4} == after.restored
    assert 5 == statistics.recovery.recovered == len(taken_in)
    assert {event.ns for event in taken_in} == declared
    assert len(recorded.of(NamespaceDeclared)) == len(declared)
    assert '"recovered":5' in recorded.of(ManifestDeclared)[0].text
    assert fold(recorded.events).violations == ()


@pytest.mark.parametrize("changes", [{"seed": 1}, {"nvme_files": NvmeSettings(outlives_engine=False)}])
def test_what_another_model_left_is_not_used(data_dir: Path, recorded: CollectingEmitter, changes: dict[str, object]) -> None:
    """Other weights, or a tier that shall begin cold, find nothing, and tell what they removed."""
    spec = ask(1)
    with Engine(tiny(data_dir)) as engine:
        on_nvme(engine, spec)
    with Engine(tiny(data_dir, **changes), [recorded.as_emitter()]) as engine:
        after = engine.submit(spec).result(10)

    assert {} == after.restored
    assert len(recorded.of(OrphanFound)) == len(recorded.of(OrphanRemoved)) == 1
    assert recorded.of(OrphanFound)[0].reason in {OrphanReason.FOREIGN, OrphanReason.UNINDEXED}


def test_a_torn_record_is_told_by_name_at_the_start(data_dir: Path, recorded: CollectingEmitter) -> None:
    """What was torn is found before anybody asks for it, told, removed, and computed again."""
    spec = ask(1, keep_logits=True)
    with Engine(tiny(data_dir)) as engine:
        before = on_nvme(engine, spec)
        torn, slot = engine.blocks_of(spec)[2], stored_slots(engine, spec)[2]
        flip_byte(engine, slot, 9000)
    with Engine(tiny(data_dir), [recorded.as_emitter()]) as engine:
        after = engine.submit(spec).result(10)
    found = [(event.reason, event.block) for event in recorded.of(OrphanFound)]

    assert [(OrphanReason.TORN, torn.id)] == found
    assert found == [(event.reason, event.block) for event in recorded.of(OrphanRemoved)]
    assert {Tier.NVME: 2} == after.restored
    assert same_logits(before, after)
    assert recorded.of(SwapInFailed) == []


def test_the_manifest_says_how_files_are_used(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """Direct I/O, checksum and sizes stand where every reader of results can find them."""
    start_engine(tiny(data_dir))
    text = recorded.of(ManifestDeclared)[0].text

    assert '"checksum":"xxh3-64"' in text
    assert '"direct_io":"' in text


def test_files_that_rot_while_they_are_read_give_right_answers(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """Bytes change under a busy engine: some loads fail, no answer does."""
    random = np.random.default_rng(3)
    engine = start_engine(tiny(data_dir, host=TierSettings(slots=24), host_low_slots=16, op_blocks=4))
    specs = [ask(number, 9 * 32, 1) for number in range(12)]
    expected = [engine.submit(spec).result(10).output for spec in specs]
    for _ in range(6):
        for slot in {copy.slot for copy in engine.ask(engine.context.nvme.copies)}:
            if random.random() < 0.2:
                flip_byte(engine, slot, int(random.integers(engine.nvme.store.geometry.record_bytes)))
        answers = [handle.result(30).output for handle in [engine.submit(spec) for spec in specs]]

        assert expected == answers
    settle(engine)
    reasons = {event.reason for event in recorded.of(SwapInFailed)}

    assert SwapInFailReason.CHECKSUM in reasons
    assert reasons <= {SwapInFailReason.CHECKSUM, SwapInFailReason.CANCELLED}
    assert fold(recorded.events).violations == ()


def test_an_invalidated_prompt_does_not_come_back_with_its_files(data_dir: Path) -> None:
    """What was invalidated is not restored by a later engine, even where its records were put back into the files."""
    spec = ask(1, keep_logits=True)
    with Engine(tiny(data_dir)) as engine:
        on_nvme(engine, spec)
        kept = {slot: take(engine, slot) for slot in stored_slots(engine, spec)}
        engine.invalidate(Selector(tenant=spec.tenant), InvalidateReason.DOCUMENT_DELETED)
        for slot, record in kept.items():
            lay(engine, slot, record)
    with Engine(tiny(data_dir)) as engine:
        recovered = engine.statistics().nvme_files.recovery.recovered
        after = engine.submit(spec).result(10)

    assert 5 == recovered
    assert {} == after.restored
