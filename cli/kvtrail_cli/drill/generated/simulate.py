"""One population: every request from its arrival to its first token, through queues and steps that are run anew."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from kvtrail_collector.facts_rows import BoolArray, IntArray

from kvtrail_cli.drill.generated.load import Load
from kvtrail_cli.drill.generated.mechanism import Scene
from kvtrail_cli.drill.generated.ops import NOBODY, OpMaker, Ops, draws
from kvtrail_cli.drill.generated.queues import StepCosts, Steps, run_steps, served
from kvtrail_cli.drill.generated.recorded import BLOCK_TOKENS, Recorded

SLOW_LOOKUPS: Final = 0.08
_NOISE: Final = 4096


@dataclass(frozen=True, slots=True)
class Trace:
    """What happened to the requests of a load, one element a request but for `ops` and `steps`.

    `lost_tokens` are computed again since they were evicted, `failed_tokens` since their load failed. `waited_op` is the op
    that was waited for longest (-1: none was).
    """

    load: Load
    lookup_start_ns: IntArray
    looked_ns: IntArray
    ready_ns: IntArray
    first_token_ns: IntArray
    lost_tokens: IntArray
    failed_tokens: IntArray
    waited_op: IntArray
    ops: Ops
    steps: Steps

    @property
    def latency_ns(self) -> IntArray:
        """Time to first token."""
        return self.first_token_ns - self.load.arrived_ns


def simulate(scene: Scene, recorded: Recorded, rng: np.random.Generator) -> Trace:
    """Run one scene. Pure; 0.2 s for 10,000 requests, most of it steps."""
    load, lost = _displaced(scene, rng)
    lookup_ns = _lookup_ns(scene, recorded, rng)
    started_ns = served(load.arrived_ns, lookup_ns, 1)
    looked_ns = started_ns + lookup_ns
    ops = OpMaker(scene, recorded, rng).make(load, looked_ns)
    ready_ns, waited_op = _ready(scene, recorded, ops, looked_ns, rng)
    failed = _failed_tokens(ops, len(load))
    hits = load.gpu_tokens + load.host_tokens + load.nvme_tokens - failed
    todo = np.maximum(load.prompt_tokens - hits, 1)
    noise = draws(recorded.step_noise_ns, _NOISE, rng)
    costs = StepCosts(recorded.budget_tokens, recorded.step_ns, recorded.prefill_token_ns, recorded.decode_token_ns)
    steps = run_steps(ready_ns, todo, load.output_tokens, costs, noise)
    first = np.zeros(len(load), dtype=np.int64)
    first[steps.chunk_request] = steps.end_ns[steps.chunk_step]
    return Trace(load, started_ns, looked_ns, ready_ns, first, lost, failed, waited_op, ops, steps)


def _displaced(scene: Scene, rng: np.random.Generator) -> tuple[Load, IntArray]:
    """Hits that lie a tier lower than they did, and hits that are lost; how many tokens of each request are."""
    load, mechanism = scene.load, scene.mechanism
    struck = np.zeros(len(load), dtype=np.bool_) if scene.span is None else scene.span.has(load.arrived_ns)
    moved = struck & (rng.random(len(load)) < mechanism.host_to_nvme)
    lost = struck & (rng.random(len(load)) < mechanism.lost_share)
    host = np.where(moved | lost, 0, load.host_tokens)
    nvme = np.where(lost, 0, np.where(moved, load.nvme_tokens + load.host_tokens, load.nvme_tokens))
    gpu = np.where(lost, 0, load.gpu_tokens)
    gone = load.gpu_tokens + load.host_tokens + load.nvme_tokens - gpu - host - nvme
    return replace(load, gpu_tokens=gpu, host_tokens=host, nvme_tokens=nvme), gone


def _lookup_ns(scene: Scene, recorded: Recorded, rng: np.random.Generator) -> IntArray:
    """How long each lookup takes; within a fault some take long."""
    count = len(scene.load)
    usual = np.maximum(draws(recorded.lookup_ns, count, rng), 1)
    if scene.span is None or not scene.mechanism.lookup_stall_ns:
        return usual
    slow = scene.span.has(scene.load.arrived_ns) & (rng.random(count) < SLOW_LOOKUPS)
    return usual + np.where(slow, scene.mechanism.lookup_stall_ns, 0)


def _ready(
    scene: Scene, recorded: Recorded, ops: Ops, looked_ns: IntArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """When the scheduler knows that all loads of each request are over, and the op that ended last, where it waited."""
    waiter, closing = ops.waiter, ops.closing_ns
    awaited = np.flatnonzero((waiter != NOBODY) & ops.is_read)
    awaited = awaited[np.argsort(closing[awaited], kind="stable")]
    last = np.full(len(looked_ns), NOBODY)
    last[waiter[awaited]] = awaited
    ends = np.where(last == NOBODY, 0, closing[np.maximum(last, 0)]) if len(ops) else np.zeros(len(looked_ns), dtype=np.int64)
    waits = (last != NOBODY) & (ends > looked_ns)
    noticed = _noticed(scene, ends, draws(recorded.noticed_ns, len(looked_ns), rng))
    return np.where(waits, noticed, looked_ns), np.where(waits, last, NOBODY)


def _noticed(scene: Scene, ends_ns: IntArray, delay_ns: IntArray) -> IntArray:
    """When the end of a load is seen: soon as a rule, at the next look where looks are seldom."""
    span, every = scene.span, scene.mechanism.notice_every_ns
    if span is None or not every:
        return ends_ns + delay_ns
    looks: BoolArray = span.has(ends_ns)
    next_look = span.start_ns + -(-(ends_ns - span.start_ns) // every) * every
    return np.where(looks, next_look, ends_ns) + delay_ns


def _failed_tokens(ops: Ops, requests: int) -> IntArray:
    """Tokens of each request whose load failed."""
    own = np.flatnonzero(ops.is_failed & (ops.request != NOBODY))
    return np.bincount(ops.request[own], weights=ops.blocks[own] * BLOCK_TOKENS, minlength=requests).astype(np.int64)
