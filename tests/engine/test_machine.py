"""The whole engine under any sequence of what can happen to it: every answer has the bits of a run on the gpu alone.

The ordinary suite takes a few hundred steps; with KVTRAIL_LONG=1 it takes ten thousand.
"""

import os
import tempfile
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from kvtrail_engine.engine import Engine
from kvtrail_engine.identity.selector import Selector
from kvtrail_engine.proof import settle
from kvtrail_engine.request import Outcome, RequestHandle, RequestResult, RequestSpec, RetentionRule
from kvtrail_engine.settings import (
    EngineSettings,
    FloorSettings,
    PrefetchSettings,
    RestorePolicy,
    StepSettings,
    TenantQuota,
    TierSettings,
)
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_engine.tiers.block import CopyState
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    Invalidated,
    PrefetchCancelled,
    PrefetchIssued,
    PrefetchUsed,
    PrefetchWasted,
    SwapInFailed,
    SwapInLoaded,
    SwapInQueued,
    SwapOutFailed,
    SwapOutQueued,
    SwapOutWritten,
)
from kvtrail_schema.lifecycle import CopyState as ToldState
from kvtrail_schema.lifecycle import fold

from tests.engine.engines import BLOCK, ask, tiny
from tests.engine.records import flip_byte

IS_LONG = bool(os.environ.get("KVTRAIL_LONG"))
EXAMPLES, STEPS = (200, 50) if IS_LONG else (8, 30)
MS = 1_000_000
TENANTS = ("a", "b")
MAX_OPEN = 6

pytestmark = pytest.mark.timeout(7200 if IS_LONG else 300)


def machine_settings(data_dir: Path) -> EngineSettings:
    """Everything on, and hardly any room."""
    return tiny(
        data_dir,
        gpu=TierSettings(slots=24),
        host=TierSettings(slots=16, queue_ops=6, floor=FloorSettings(read_latency_ns=MS)),
        nvme=TierSettings(slots=40, workers=2, queue_ops=6, floor=FloorSettings(read_latency_ns=MS)),
        host_low_slots=4,
        gpu_low_slots=2,
        op_blocks=3,
        step=StepSettings(budget_tokens=96, max_sequences=4),
        restore_policy=RestorePolicy.AUTO,
        sample_interval_ns=5 * MS,
        ageing_point_ns=MS,
        tenant_quotas=(TenantQuota(Tier.GPU, 18, "b"), TenantQuota(Tier.HOST, 8, "b"), TenantQuota(Tier.NVME, 30)),
        prefetch=PrefetchSettings(window=64, gpu_reserve_slots=4, deadline_ns=30 * MS, slack_ns=10 * MS, hint_grace_ns=60 * MS),
    )


@cache
def gpu_only(number: int, tokens: int) -> npt.NDArray[np.float32]:
    """The logits of a prompt as an engine computes them that has nothing but a gpu, and nothing on it."""
    with tempfile.TemporaryDirectory() as folder:
        none = TierSettings(slots=0)
        alone = tiny(Path(folder), host=none, nvme=none, host_low_slots=0)
        with Engine(alone) as engine:
            logits = engine.submit(ask(number, tokens, 1, keep_logits=True)).result(30).first_logits
    assert logits is not None
    return logits


class EngineMachine(RuleBasedStateMachine):
    """Does anything to an engine, in any order, and compares every answer with a run on the gpu alone."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.recorded = CollectingEmitter()
        settings = machine_settings(Path(self.folder.name))
        self.engine = Engine(settings, [self.recorded.as_emitter()]).start()
        self.open: list[tuple[RequestSpec, RequestHandle]] = []

    def submit(self, spec: RequestSpec) -> None:
        """Ask something; with too much open, wait for the oldest first."""
        if len(self.open) >= MAX_OPEN:
            self.check(*self.open.pop(0))
        self.open.append((spec, self.engine.submit(spec)))

    def check(self, spec: RequestSpec, handle: RequestHandle) -> RequestResult:
        """The answer has the bits of the gpu-only run."""
        result = handle.result(30)
        assert result.outcome is not Outcome.REJECTED
        if result.outcome is Outcome.FINISHED:
            assert result.first_logits is not None
            assert np.array_equal(gpu_only(int(spec.name[1:]), len(spec.prompt)), result.first_logits), spec.name
        return result

    @rule(number=st.integers(0, 5), blocks=st.integers(1, 8), more=st.integers(0, 1), tenant=st.sampled_from(TENANTS))
    def ask(self, number: int, blocks: int, more: int, tenant: str) -> None:
        """A prompt, whole blocks or one token more."""
        self.submit(ask(number, blocks * BLOCK + more, 2, tenant=tenant, keep_logits=True))

    @rule(number=st.integers(0, 5), priority=st.integers(0, 100), expires_ms=st.sampled_from([None, 1, 20]))
    def ask_on_terms(self, number: int, priority: int, expires_ms: int | None) -> None:
        """A prompt whose blocks are kept dearly, or for a moment only."""
        expiry_ns = None if expires_ms is None else expires_ms * MS
        rules = (RetentionRule(priority, 0, 3 * BLOCK, 10 * MS, expiry_ns),)
        self.submit(ask(number, 4 * BLOCK + 1, 2, tenant="a", keep_logits=True, retention_rules=rules))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def ask_instead(self, data: st.DataObject) -> None:
        """A request that supersedes another one."""
        spec, handle = data.draw(st.sampled_from(self.open))
        self.submit(replace(spec, supersedes=handle.req))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """Call a request off."""
        data.draw(st.sampled_from(self.open))[1].cancel()

    @rule()
    def wait(self) -> None:
        """Everything that is open ends well, and nothing is on its way any more."""
        while self.open:
            self.check(*self.open.pop(0))
        settle(self.engine)

    @rule(number=st.integers(0, 5), tenant=st.sampled_from(TENANTS), use_in_ms=st.integers(1, 60))
    def hint(self, number: int, tenant: str, use_in_ms: int) -> None:
        """A session will go on."""
        self.engine.hint(f"s{number % 3}", ask(number, 8 * BLOCK, tenant=tenant), use_in_ms * MS)

    @rule(number=st.integers(0, 2))
    def forget(self, number: int) -> None:
        """Or not."""
        self.engine.forget_hint(f"s{number}")

    @rule(tier=st.sampled_from([Tier.GPU, Tier.GPU, Tier.HOST, Tier.NVME]))
    def clear(self, tier: Tier) -> None:
        """Evict what is idle in a tier."""
        self.engine.ask(lambda: self.engine.maintenance.clear(tier))

    @rule()
    def send_down(self) -> None:
        """Move what is idle on host to nvme."""
        self.engine.ask(self.engine.maintenance.demote_all)

    @rule(tenant=st.sampled_from(TENANTS))
    def invalidate(self, tenant: str) -> None:
        """Take a tenant's blocks away; the evidence is complete when that returns."""
        came = self.engine.invalidate(Selector(tenant=tenant))
        told = Counter(event.tier for event in self.recorded.of(Invalidated) if event.cause == came.event)

        assert came.unfinished == 0
        assert set(told) <= set(came.copies)
        assert [copy for pool in self.engine.context.pools.values() for copy in pool.copies() if copy.doom] == []

    @rule(number=st.integers(0, 5), at=st.integers(0, 4096), tenant=st.sampled_from(TENANTS))
    def corrupt(self, number: int, at: int, tenant: str) -> None:
        """Turn a byte of a record over."""
        settle(self.engine)
        nvme, blocks = self.engine.context.nvme, self.engine.blocks_of(ask(number, 8 * BLOCK, tenant=tenant))
        copies = self.engine.ask(lambda: [nvme.find(block.id) for block in blocks])
        for copy in [copy for copy in copies if copy is not None and copy.state is CopyState.READY][:1]:
            flip_byte(self.engine, copy.slot, at)

    @rule(read_ms=st.sampled_from([0, 1, 8]))
    def slow_down(self, read_ms: int) -> None:
        """Reads from nvme take another time from now on."""
        self.engine.floor_of(Tier.NVME).settings = FloorSettings(read_latency_ns=read_ms * MS)

    def teardown(self) -> None:
        """What was told is legal, every op and every prefetch has its one end, and the pools agree with it."""
        try:
            self.wait()
            pools = self.engine.statistics().pools
            self.engine.close()
            self.judge()
            assert all(pool.slots == pool.free + pool.evictable for pool in pools.values())
        finally:
            self.engine.close()
            self.folder.cleanup()

    def judge(self) -> None:
        """Look through everything that was told."""
        folded, events = fold(self.recorded.events), self.recorded.events
        assert folded.violations == ()
        assert [copy for copy in folded.copies.values() if copy.refs and copy.state is ToldState.READABLE] == []
        begun = Counter((e.op, e.block) for e in events if isinstance(e, SwapInQueued | SwapOutQueued))
        ended = (SwapInLoaded, SwapOutWritten, SwapInFailed, SwapOutFailed)
        assert begun == Counter((e.op, e.block) for e in events if isinstance(e, ended))
        issued = Counter((e.prefetch, e.block) for e in events if isinstance(e, PrefetchIssued))
        ends = (PrefetchUsed, PrefetchWasted, PrefetchCancelled)
        assert issued == Counter((e.prefetch, e.block) for e in events if isinstance(e, ends))


EngineMachine.TestCase.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
TestEngine = EngineMachine.TestCase


@pytest.mark.parametrize("tier", [Tier.GPU, Tier.HOST])
def test_two_blocks_exchanged_on_purpose_are_noticed(tier: Tier) -> None:
    """The comparison that the machine makes goes red for a wrong block, so that its being green says something."""
    machine = EngineMachine()
    try:
        machine.ask(1, 4, 1, "a")
        machine.wait()
        first, second = machine.engine.blocks_of(ask(1, 4 * BLOCK + 1, tenant="a"))[:2]
        machine.engine.ask(lambda: machine.engine.maintenance.swap(tier, first.id, second.id))
        if tier is Tier.HOST:
            machine.clear(Tier.GPU)
        machine.ask(1, 4, 1, "a")

        with pytest.raises(AssertionError):
            machine.wait()
    finally:
        machine.open.clear()
        machine.engine.close()
        machine.folder.cleanup()
