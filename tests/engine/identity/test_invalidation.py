"""What was invalidated is gone from every tier, leaves evidence, and is never read again."""

import stat
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import EngineClosedError, SettingsError
from kvtrail_engine.identity.journal import Journal
from kvtrail_engine.identity.selector import Selector, hashed_members
from kvtrail_engine.proof import settle
from kvtrail_engine.request import Outcome, RequestSpec
from kvtrail_engine.settings import FloorSettings, StepSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    AttentionRead,
    Invalidated,
    InvalidationRequested,
    PrefixHit,
    PrefixMiss,
    RequestCancelled,
    SwapInQueued,
)
from kvtrail_schema.identity import Namespace, NamespaceId
from kvtrail_schema.lifecycle import fold
from kvtrail_schema.reasons import CancelReason, InvalidateReason, MissReason

from tests.engine.conftest import StartEngine
from tests.engine.engines import prompt, tiny

MS = 1_000_000
KEY = bytes(32)
WHO = Namespace(tenant="a", document_version="d1", model_version="m1", policy="p1", access_group="g1")
SELECTORS = [
    (Selector(tenant="a"), InvalidateReason.PERMISSION_REVOKED, MissReason.PERMISSION),
    (Selector(document_version="d1"), InvalidateReason.DOCUMENT_DELETED, MissReason.VERSION),
    (Selector(model_version="m1"), InvalidateReason.MODEL_UPGRADED, MissReason.VERSION),
    (Selector(policy="p1"), InvalidateReason.POLICY_CHANGED, MissReason.VERSION),
    (Selector(access_group="g1"), InvalidateReason.MANUAL, MissReason.CLEARED),
]


def spec(number: int, namespace: Namespace = WHO, output_tokens: int = 2) -> RequestSpec:
    """A request for the prompt of this number in a namespace."""
    return RequestSpec(f"r{number}", prompt(number), output_tokens, namespace=namespace, keep_logits=True)


def spread(engine: Engine, other: Namespace) -> None:
    """Put prompts of two namespaces on the gpu, one of each on nvme too, the others on host."""
    for number in (1, 2, 3):
        engine.submit(spec(number)).result(10)
        engine.submit(spec(number + 10, other)).result(10)
        settle(engine)
        if number == 1:
            engine.ask(engine.maintenance.demote_all)
            settle(engine)


def first_payload(engine: Engine, asked: RequestSpec) -> bytes:
    """The bytes of a prompt's first block, as they lie on the gpu."""
    copy = engine.context.gpu.find(engine.blocks_of(asked)[0].id)
    assert copy is not None
    return engine.gpu_arena.data[copy.slot].numpy().tobytes()


def on_disk(engine: Engine, data_dir: Path) -> set[bytes]:
    """Every stretch of the segment files that is as long as a payload and begins where one may."""
    size = engine.settings.block_bytes
    contents = [path.read_bytes() for path in (data_dir / "nvme").iterdir()]
    return {content[at : at + size] for content in contents for at in range(0, len(content), 64)}


@pytest.mark.parametrize("case", SELECTORS)
def test_every_tier_lets_go_and_says_so(
    data_dir: Path,
    start_engine: StartEngine,
    recorded: CollectingEmitter,
    case: tuple[Selector, InvalidateReason, MissReason],
) -> None:
    """The evidence names each copy and the request that took it; lookups miss with the right reason and cause; the files
    hold none of it; and a namespace that was not meant keeps its blocks.
    """
    selector, reason, missed = case
    other = Namespace(tenant="b", document_version="d2", model_version="m2", policy="p2", access_group="g2")
    engine = start_engine(tiny(data_dir))
    spread(engine, other)
    mine, theirs = first_payload(engine, spec(1)), first_payload(engine, spec(11, other))
    assert {mine, theirs} <= on_disk(engine, data_dir)
    came = engine.invalidate(selector, reason)
    left = on_disk(engine, data_dir)
    asked = recorded.of(InvalidationRequested)
    gone = recorded.of(Invalidated)
    again = [engine.submit(spec(number)).result(10) for number in (1, 2, 3)]
    kept = engine.submit(spec(11, other)).result(10)

    assert mine not in left
    assert theirs in left
    assert [(came.event, reason)] == [(event.id, event.reason) for event in asked]
    assert "a" not in (asked[0].text or "").split('"')
    assert dict(Counter(event.tier for event in gone)) == came.copies
    assert {Tier.GPU, Tier.HOST, Tier.NVME} == set(came.copies)
    assert 0 == came.unfinished
    assert {(reason, came.event)} == {(event.reason, event.cause) for event in gone}
    for result in again:
        first = [event for event in recorded.of(PrefixMiss) if event.req == result.req]
        assert {(missed, came.event)} == {(event.reason, event.cause) for event in first}
        assert 0 == sum(event.req == result.req for event in recorded.of(PrefixHit))
    assert any(event.req == kept.req for event in recorded.of(PrefixHit))
    assert () == fold(recorded.events).violations


def test_who_reads_is_called_off_and_who_waits_begins_anew(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """No read of an invalidated copy is told after it, not even by a request that was decoding on it."""
    engine = start_engine(tiny(data_dir, step=StepSettings(floor_ns=10 * MS, max_sequences=1)))
    reading, waiting = engine.submit(spec(1, output_tokens=50)), engine.submit(spec(1, output_tokens=1))
    while not recorded.of(AttentionRead):
        pass
    came = engine.invalidate(Selector(tenant="a"), InvalidateReason.PERMISSION_REVOKED)
    results = [handle.result(10).outcome for handle in (reading, waiting)]
    gone_at = max(event.seq or 0 for event in recorded.of(Invalidated))
    taken = {(event.block, event.slot) for event in recorded.of(Invalidated)}
    late = {(e.block, e.slot) for e in recorded.of(AttentionRead) if (e.seq or 0) > gone_at and e.req == reading.req}

    assert [Outcome.CANCELLED, Outcome.FINISHED] == results
    assert [CancelReason.SUPERSEDED] == [event.reason for event in recorded.of(RequestCancelled)]
    assert came.copies[Tier.GPU] > 0
    assert set() == late & taken
    assert () == fold(recorded.events).violations


def test_what_is_on_its_way_is_taken_when_it_lands(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """Copies that an op is filling fall to the invalidation as well, and the caller waits for them."""
    slow = TierSettings(slots=40, floor=FloorSettings(read_latency_ns=60 * MS))
    engine = start_engine(tiny(data_dir, host=slow))
    engine.submit(spec(1)).result(10)
    settle(engine)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    loading = engine.submit(spec(1))
    while not recorded.of(SwapInQueued):
        pass
    came = engine.invalidate(Selector(tenant="a"))
    settle(engine)

    assert Outcome.CANCELLED is loading.result(10).outcome
    assert 0 == came.unfinished
    assert () == fold(recorded.events).violations
    assert [] == [copy for copy in engine.ask(engine.context.gpu.copies) if copy.block.owner == "a"]
    assert all(pool.slots == pool.free + pool.evictable for pool in engine.statistics().pools.values())


def test_an_invalidation_outlives_the_engine(data_dir: Path, recorded: CollectingEmitter) -> None:
    """What an earlier engine left on disk is not found by a later one, even where nothing of it was erased."""
    with Engine(tiny(data_dir)) as engine:
        before = engine.submit(spec(1)).result(10)
        blocks = engine.blocks_of(spec(1))
        engine._journal.invalidate(Selector(tenant="a").hashed(engine.lifecycle.key))
    with Engine(tiny(data_dir), [recorded.as_emitter()]) as engine:
        after = engine.submit(spec(1)).result(10)

        assert {block.id for block in blocks} & {block.id for block in engine.blocks_of(spec(1))} == set()
    assert before.output == after.output
    assert [] == recorded.of(PrefixHit)
    assert 0o600 == stat.S_IMODE((data_dir / "identity.jsonl").stat().st_mode)


def test_selecting_nothing_in_particular_is_refused(data_dir: Path) -> None:
    """An empty selector would mean everything; nobody gets that by mistake. A closed engine says so."""
    with Engine(tiny(data_dir)) as engine, pytest.raises(SettingsError, match="names at least one"):
        engine.invalidate(Selector())
    with pytest.raises(EngineClosedError):
        engine.invalidate(Selector(tenant="a"))


values = st.sampled_from(["", "x", "y"])
namespaces = st.builds(Namespace, tenant=values, document_version=values, model_version=values, policy=values)
selectors = st.builds(Selector, tenant=values, document_version=values, model_version=values, policy=values)


@given(made=st.lists(selectors.filter(lambda each: each != Selector()), max_size=5), namespace=namespaces)
def test_roots_change_with_each_invalidation_that_means_a_namespace(
    tmp_path_factory: pytest.TempPathFactory, made: list[Selector], namespace: Namespace
) -> None:
    """And with no other; a later life reads the same roots from the file."""
    path = tmp_path_factory.mktemp("journal") / "identity.jsonl"
    journal, members, root = Journal(path, KEY), hashed_members(KEY, namespace), None
    for selector in made:
        journal.invalidate(selector.hashed(KEY))
        given_members = {name: getattr(selector, name) for name in ("tenant", "document_version", "model_version", "policy")}
        is_meant = all(getattr(namespace, name) == value for name, value in given_members.items() if value)
        changed = journal.root(members)

        assert (changed != root) is is_meant
        root = changed
    journal.close()
    later = Journal(path, KEY)

    assert root == later.root(members)
    later.close()


def test_a_line_that_cannot_be_read_invalidates_everything(tmp_path: Path) -> None:
    """A damaged journal may have held an invalidation of anything: failing safe means a miss."""
    path = tmp_path / "identity.jsonl"
    first = Journal(path, KEY)
    first.remember(NamespaceId(7), hashed_members(KEY, WHO))
    first.close()
    path.write_bytes(path.read_bytes() + b'{"invalidated": "torn')
    journal = Journal(path, KEY)
    fresh = hashed_members(KEY, replace(WHO, tenant="z"))

    assert journal.root(fresh) is not None
    assert {NamespaceId(7)} == journal.selected(Selector(tenant="a").hashed(KEY))
    assert set() == journal.selected(Selector(tenant="z").hashed(KEY))
    journal.close()
