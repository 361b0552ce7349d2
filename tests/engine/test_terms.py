"""Retention and quotas, as an engine keeps them."""

from collections import Counter
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kvtrail_engine.errors import SettingsError
from kvtrail_engine.proof import settle
from kvtrail_engine.request import Outcome, RequestSpec, RetentionRule
from kvtrail_engine.settings import StepSettings, TenantQuota, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_engine.tiers.block import DEFAULT_PRIORITY, USUAL
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    BlockCreated,
    Evicted,
    PrefillChunk,
    PrefixMiss,
    RequestFirstToken,
    RequestRejected,
    RequestWaiting,
    SwapOutSkipped,
)
from kvtrail_schema.lifecycle import fold
from kvtrail_schema.reasons import (
    EvictReason,
    MissReason,
    PrefillReason,
    RejectReason,
    SwapOutSkipReason,
    WaitReason,
)

from tests.engine.conftest import StartEngine
from tests.engine.engines import BLOCK, ask, tiny

MS = 1_000_000


def with_rules(number: int, *rules: RetentionRule, **more: Any) -> RequestSpec:
    """A request whose prompt is kept by these rules."""
    return ask(number, retention_rules=rules, **more)


def test_a_rule_is_for_the_tokens_that_it_names() -> None:
    """The dearest rule's priority holds for each block that it touches, the earliest expiry for all."""
    spec = with_rules(1, RetentionRule(80, 0, 40), RetentionRule(90, 33, None, 5), RetentionRule(0, 64, 70, expires_after_ns=9))

    assert [80, 90, 90, 90] == [spec.terms(at, at + 32, 100).priority for at in (0, 32, 64, 96)]
    assert [None, 105, 105, 105] == [spec.terms(at, at + 32, 100).priority_until_ns for at in (0, 32, 64, 96)]
    assert [None, None, 109, None] == [spec.terms(at, at + 32, 100).expires_ns for at in (0, 32, 64, 96)]
    assert USUAL == ask(1).terms(0, 32, 100)


def test_what_is_kept_dearly_leaves_last(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """A prompt of high priority stays on the gpu while later ones of the usual priority leave, and events say how dear."""
    engine = start_engine(tiny(data_dir))
    engine.submit(with_rules(1, RetentionRule(90, 0, 3 * BLOCK))).result(10)
    for number in range(2, 14):
        engine.submit(ask(number)).result(10)
    blocks = engine.blocks_of(ask(1))
    stays = [engine.context.gpu.find(block.id) is not None for block in blocks]
    created = [event.priority for event in recorded.of(BlockCreated)][:5]
    left = {event.priority for event in recorded.of(Evicted) if event.tier is Tier.GPU}

    assert [True, True, True, False, False] == stays
    assert [90, 90, 90, DEFAULT_PRIORITY, DEFAULT_PRIORITY] == created
    assert {DEFAULT_PRIORITY} == left


def test_nobody_reads_what_has_expired(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """After its time a block is a miss on every tier, is computed again for that reason, and its places are given up."""
    engine = start_engine(tiny(data_dir, sample_interval_ns=10 * MS))
    spec = with_rules(1, RetentionRule(expires_after_ns=150 * MS))
    first = engine.submit(spec).result(10)
    settle(engine)
    while not recorded.of(Evicted):
        pass
    second = engine.submit(spec).result(10)
    why = {event.reason for event in recorded.of(PrefillChunk) if event.req == second.req}
    missed = {event.reason for event in recorded.of(PrefixMiss) if event.req == second.req}

    assert first.output == second.output
    assert {MissReason.EXPIRED} == missed
    assert PrefillReason.EXPIRED in why
    assert {EvictReason.EXPIRED} == {event.reason for event in recorded.of(Evicted)}
    assert () == fold(recorded.events).violations


def test_what_expires_while_it_is_used_is_not_given_to_others(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """A request that decodes keeps its copy; a newcomer computes its own, with the same answer."""
    engine = start_engine(tiny(data_dir, step=StepSettings(floor_ns=5 * MS)))
    spec = with_rules(1, RetentionRule(expires_after_ns=30 * MS), output_tokens=40)
    decoding = engine.submit(spec)
    while not recorded.of(BlockCreated):
        pass
    engine.submit(ask(9, 32, 20)).result(10)
    late = engine.submit(ask(1, output_tokens=40)).result(10)

    assert decoding.result(10).output == late.output
    assert 5 * BLOCK == late.computed_tokens


@pytest.mark.parametrize("seed", range(2))
def test_no_tenant_holds_more_than_its_quota(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter, seed: int
) -> None:
    """On every tier and at any moment, whatever its priority; its own blocks make room for it, and say so."""
    quotas = (TenantQuota(Tier.GPU, 15, "greedy"), TenantQuota(Tier.HOST, 12, "greedy"), TenantQuota(Tier.NVME, 10))
    engine = start_engine(tiny(data_dir, tenant_quotas=quotas, host_low_slots=16))
    random = np.random.default_rng(seed)
    most: Counter[tuple[Tier, str]] = Counter()
    for _ in range(60):
        tenant = str(random.choice(["greedy", "modest"]))
        rules = (RetentionRule(100),) if tenant == "greedy" else ()
        number = int(random.integers(12)) + 100 * (tenant == "modest")
        engine.submit(ask(number, tenant=tenant, retention_rules=rules)).result(10)
        for (tier, pool), owner in product(engine.context.pools.items(), ("greedy", "modest")):
            most[tier, owner] = max(most[tier, owner], engine.ask(partial(pool.held, owner)))
    settle(engine)
    reasons = {(event.tier, event.reason) for event in recorded.of(Evicted)}

    assert most[Tier.GPU, "greedy"] <= 15 < most[Tier.GPU, "modest"]
    assert most[Tier.HOST, "greedy"] <= 12 < most[Tier.HOST, "modest"]
    assert 0 < most[Tier.NVME, "greedy"] <= 10
    assert 0 < most[Tier.NVME, "modest"] <= 10
    assert {(Tier.GPU, EvictReason.QUOTA), (Tier.HOST, EvictReason.QUOTA), (Tier.NVME, EvictReason.QUOTA)} <= reasons
    assert () == fold(recorded.events).violations


def test_a_tenant_at_its_quota_holds_back_nobody_else(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """Who waits for its own quota says so and is passed by; what could never fit into it is rejected."""
    quota = (TenantQuota(Tier.GPU, 10, "greedy"),)
    engine = start_engine(tiny(data_dir, tenant_quotas=quota, step=StepSettings(floor_ns=4 * MS)))
    greedy = [engine.submit(ask(number, tenant="greedy", output_tokens=20)) for number in range(4)]
    modest = engine.submit(ask(9, tenant="modest", output_tokens=1)).result(10)
    results = [handle.result(10) for handle in greedy]
    refused = engine.submit(ask(5, 11 * BLOCK, tenant="greedy")).result(10)
    first_tokens = {event.req: event.t_ns for event in recorded.of(RequestFirstToken)}
    waits = {event.reason for event in recorded.of(RequestWaiting) if event.req == results[-1].req}

    assert {Outcome.FINISHED} == {result.outcome for result in results}
    assert first_tokens[modest.req] < first_tokens[results[-1].req]
    assert WaitReason.LIMIT in waits
    assert Outcome.REJECTED is refused.outcome
    assert [RejectReason.TENANT_QUOTA] == [event.reason for event in recorded.of(RequestRejected)]


def test_a_write_beyond_the_quota_is_left_out_and_says_so(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """Where all that a tenant has on host is in use or on its way, more is not written."""
    quota = (TenantQuota(Tier.HOST, 2, "greedy"),)
    engine = start_engine(tiny(data_dir, tenant_quotas=quota, host=TierSettings(slots=40)))
    engine.submit(ask(1, tenant="greedy")).result(10)
    settle(engine)

    assert {SwapOutSkipReason.QUOTA} == {event.reason for event in recorded.of(SwapOutSkipped)}
    assert 2 == engine.ask(lambda: engine.context.host.held("greedy"))


def test_quotas_must_be_positive(data_dir: Path) -> None:
    """A quota of nothing is a mistake."""
    with pytest.raises(SettingsError, match="quota must be positive"):
        tiny(data_dir, tenant_quotas=(TenantQuota(Tier.GPU, 0),)).check()
