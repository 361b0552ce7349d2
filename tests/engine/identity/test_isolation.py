"""KV never crosses a namespace, whatever differs, wherever it lies."""

import os
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_engine.engine import Engine
from kvtrail_engine.identity.mismatch import mismatch, problem_of
from kvtrail_engine.proof import settle
from kvtrail_engine.request import RequestSpec
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_engine.tiers.block import Block, Copy, CopyState, Doom, Terms
from kvtrail_schema.enums import Dtype, Tier
from kvtrail_schema.events import PrefixHit, PrefixMiss
from kvtrail_schema.identity import BlockId, EventId, Namespace, NamespaceId, Slot
from kvtrail_schema.reasons import InvalidateReason, MissReason

from tests.engine.engines import BLOCK, prompt, tiny

ATTEMPTS = 10_000 if os.environ.get("KVTRAIL_LONG") else 300
PERMISSIONS = ("tenant", "access_group", "lora", "salt")
VERSIONS = ("model", "model_version", "tokenizer", "prompt_template", "policy", "document_version", "lora_version")
BASE = Namespace(tenant="a", access_group="g", document_version="d1", policy="p1", model_version="m1")


def with_members(members: dict[str, Any]) -> Namespace:
    """The usual namespace with some other members."""
    return replace(BASE, **members)


def spec(number: int, namespace: Namespace) -> RequestSpec:
    """A short request for the prompt of this number in a namespace."""
    return RequestSpec(f"r{number}", prompt(number, 2 * BLOCK + 1), 1, namespace=namespace, keep_logits=True)


@pytest.fixture
def engine(data_dir: Path, recorded: CollectingEmitter) -> Iterator[Engine]:
    """An engine that tells everything."""
    with Engine(tiny(data_dir), [recorded.as_emitter()]) as made:
        yield made


def misses(recorded: CollectingEmitter, req: int) -> list[MissReason]:
    """Why a request's blocks were missed."""
    return [event.reason for event in recorded.of(PrefixMiss) if event.req == req]


@pytest.mark.parametrize("member", [*PERMISSIONS, *VERSIONS])
def test_each_member_alone_keeps_blocks_apart(engine: Engine, recorded: CollectingEmitter, member: str) -> None:
    """The same prompt in a namespace that differs in one member misses, and says whether that is a right or a version."""
    other = with_members({member: "other"})
    first = engine.submit(spec(1, BASE)).result(10)
    second = engine.submit(spec(1, other)).result(10)
    again = engine.submit(spec(1, BASE)).result(10)
    reason = MissReason.PERMISSION if member in PERMISSIONS else MissReason.VERSION

    assert [MissReason.NEVER_STORED] * 2 == misses(recorded, first.req)
    assert [reason] * 2 == misses(recorded, second.req)
    assert [] == misses(recorded, again.req)
    assert first.output == second.output == again.output


@pytest.mark.timeout(1800 if os.environ.get("KVTRAIL_LONG") else 120)
def test_no_generated_attempt_reads_across(engine: Engine, recorded: CollectingEmitter) -> None:
    """Namespaces drawn at random ask for each other's content on every tier: each hit is of a block that the asker stored."""
    random = np.random.default_rng(7)
    names = [field.name for field in fields(Namespace) if field.name in {*PERMISSIONS, *VERSIONS}]
    stored: set[tuple[Namespace, int]] = set()
    for attempt in range(ATTEMPTS):
        drawn = {name: str(random.choice(["", "x", "y"])) for name in names}
        namespace, number = with_members(drawn), int(random.integers(4))
        result = engine.submit(spec(number, namespace)).result(10)
        hits = [event for event in recorded.of(PrefixHit) if event.req == result.req]
        if (namespace, number) not in stored:
            assert hits == [], (attempt, namespace)
            assert {MissReason.NEVER_STORED} != set(misses(recorded, result.req)) or not any(n == number for _, n in stored)
        stored.add((namespace, number))
        _move(engine, attempt)
        _forget(recorded)

    assert len(stored) > ATTEMPTS // 3


def _move(engine: Engine, attempt: int) -> None:
    """Once in a while, send everything a tier down, so that attempts meet blocks in every place."""
    if attempt % 5 == 0:
        settle(engine)
        engine.ask(engine.maintenance.demote_all)
        engine.ask(lambda: engine.maintenance.clear(Tier.GPU))


def _forget(recorded: CollectingEmitter) -> None:
    """Drop what was told, so that looking through it stays cheap."""
    with recorded._lock:
        recorded._events.clear()


tuples = st.builds(Namespace, **{name: st.sampled_from(["", "x"]) for name in (*PERMISSIONS, *VERSIONS)})


@given(asked=tuples, stored=tuples)
def test_a_right_comes_before_a_version(asked: Namespace, stored: Namespace) -> None:
    """Where members of both sorts differ, the miss speaks of the right; the same tuple is no mismatch."""
    differing = {name for name in (*PERMISSIONS, *VERSIONS) if getattr(asked, name) != getattr(stored, name)}
    expected = MissReason.VERSION if differing else None
    if differing & set(PERMISSIONS):
        expected = MissReason.PERMISSION

    assert expected is mismatch(asked, stored)


WANTED = Block(BlockId(1), NamespaceId(2), None, 0, 32, "a", "m1")


def copy(block: Block = WANTED, **changes: object) -> Copy:
    """A copy that the index has under the block's id."""
    made = Copy(block, Tier.GPU, Slot(3), CopyState.READY, 0)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        (copy(), None),
        (copy(replace(WANTED, owner="b")), MissReason.PERMISSION),
        (copy(replace(WANTED, ns=NamespaceId(9))), MissReason.PERMISSION),
        (copy(doom=Doom(EventId(1), InvalidateReason.MANUAL)), MissReason.PERMISSION),
        (copy(replace(WANTED, model_version="m2")), MissReason.VERSION),
        (copy(replace(WANTED, dtype=Dtype.FP16)), MissReason.VERSION),
        (copy(replace(WANTED, token_start=32)), MissReason.CHECKSUM),
        (copy(replace(WANTED, tokens=16)), MissReason.CHECKSUM),
        (copy(replace(WANTED, parent=BlockId(5))), MissReason.CHECKSUM),
        (copy(replace(WANTED, id=BlockId(5))), MissReason.CHECKSUM),
        (copy(slot=Slot(-1)), MissReason.CHECKSUM),
        (copy(refs=-1), MissReason.CHECKSUM),
        (copy(terms=Terms(expires_ns=100)), MissReason.EXPIRED),
    ],
)
def test_one_wrong_thing_and_a_copy_is_not_reused(stored: Copy, reason: MissReason | None) -> None:
    """An index entry is no proof: owner, version, type, range, place and references must all be right."""
    assert reason is problem_of(stored, WANTED, 100)
