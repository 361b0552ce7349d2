"""Populations from a queueing model: bursty arrivals, heavy tails, queues that remember, and faults in their mechanism.

Requests are looked up, restore from the single server of a tier in the order of arrival, and wait for one that computes.
Arrivals come at a rate that wanders and jumps; service times have heavy tails; the machine stands still now and then. A
fault changes a service time or adds work; its share in latency is what the queues make of it, as in a real engine.
"""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.population import Cause, Population
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
SECOND = 1_000_000_000
TIERS = ("host", "nvme", "remote")
CAUSES = (
    Cause(Component.BUDGET, None),
    Cause(Component.LOOKUP, None),
    *(Cause(Component.TIER_QUEUE, tier) for tier in TIERS),
    *(Cause(Component.STORAGE_READ, tier) for tier in TIERS),
    Cause(Component.NEW_PREFILL, None),
)


class Fault(Enum):
    """What goes wrong, in its mechanism."""

    NONE = "none"
    NVME_SLOW = "nvme-slow"
    REMOTE_SLOW = "remote-slow"
    NVME_QUEUE = "nvme-queue"
    LOOKUP = "lookup"
    LONG_PROMPTS = "long-prompts"
    MIX = "mix"
    TWO = "two"


@dataclass(frozen=True, slots=True)
class Load:
    """One run: seconds, what goes wrong when and how much, and how unruly the healthy system is."""

    seed: int
    fault: Fault = Fault.NONE
    strength: float = 3.0
    run_s: float = 200.0
    start_s: float = 100.0
    end_s: float = 150.0
    rate_per_s: float = 50.0
    bursts: float = 0.5
    burst_s: float = 4.0
    tail: float = 0.6
    hiccups_per_s: float = 0.05
    mix: float = 0.0


@dataclass(slots=True)
class _Work:
    """Requests in the order of arrival, in seconds."""

    at: FloatArray
    tokens: IntArray
    tenant: IntArray
    tier: IntArray
    hit: FloatArray
    during: NDArray[np.bool_] = field(init=False)


def simulate(load: Load) -> Population:
    """The population of a run; the same load gives the same one."""
    rng = np.random.default_rng([load.seed, list(Fault).index(load.fault)])
    work = _arrivals(load, rng)
    work.during = (work.at >= load.start_s) & (work.at < load.end_s) & (load.fault is not Fault.NONE)
    lookup = rng.lognormal(np.log(0.001), load.tail, len(work.at))
    if load.fault is Fault.LOOKUP:
        lookup[work.during] *= 40 * load.strength
    spent = {Cause(Component.LOOKUP, None): lookup}
    ready = work.at + lookup
    for number, tier in enumerate(TIERS):
        own = np.flatnonzero(work.tier == number)
        queued, read = _restore(load, work, number, ready, rng)
        spent[Cause(Component.TIER_QUEUE, tier)] = _spread(own, queued, len(ready))
        spent[Cause(Component.STORAGE_READ, tier)] = _spread(own, read, len(ready))
    for cause, seconds in spent.items():
        ready = ready if cause.component is Component.LOOKUP else ready + seconds
    spent[Cause(Component.BUDGET, None)], spent[Cause(Component.NEW_PREFILL, None)] = _compute(load, work, ready, rng)
    return _population(work, spent)


def _arrivals(load: Load, rng: np.random.Generator) -> _Work:
    """When requests come, how long they are, whose they are, and what serves their prefix."""
    cells = int(load.run_s / 0.25)
    states = np.cumsum(rng.random(cells) < 0.25 / load.burst_s)
    level = rng.gamma(1 / load.bursts**2, load.bursts**2, int(states[-1]) + 1)[states]
    number = rng.poisson(load.rate_per_s * 0.25 * np.clip(level, 0.2, 2.2))
    at = np.sort(np.repeat(np.arange(cells) * 0.25, number) + rng.uniform(0, 0.25, int(number.sum())))
    during = (at >= load.start_s) & (at < load.end_s)
    long = (
        rng.random(len(at)) < 0.05 + np.where(during & (load.fault is Fault.MIX), 0.1 * load.strength, 0.0) + load.mix * during
    )
    tokens = np.where(long, rng.lognormal(8.0, 0.4, len(at)), rng.lognormal(5.5, 0.6, len(at)))
    if load.fault is Fault.LONG_PROMPTS:
        more = np.arange(load.start_s, load.end_s, 6.0 / load.strength) + rng.uniform(0, 0.5)
        at, tokens = np.concatenate([at, more]), np.concatenate([tokens, np.full(len(more), 30_000.0)])
    order = np.argsort(at, kind="stable")
    tenant = np.minimum(rng.zipf(1.8, len(at)), 8)
    tenant[np.argsort(order)[len(at) :]] = 9
    tier = rng.choice(5, len(at), p=[0.2, 0.25, 0.05, 0.4, 0.1])
    hit = np.where(tier < 4, rng.uniform(0.3, 0.9, len(at)), 0.0)
    return _Work(at[order], np.maximum(tokens[order], 16).astype(np.int64), tenant, tier, hit)


_LATENCY_S, _TOKENS_PER_S = (0.001, 0.004, 0.04), (500_000.0, 120_000.0, 40_000.0)


def _restore(
    load: Load, work: _Work, number: int, ready: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Waiting for a tier's server, and being served by it."""
    own = np.flatnonzero(work.tier == number)
    size = work.tokens[own] * work.hit[own] / _TOKENS_PER_S[number]
    service = (_LATENCY_S[number] + size) * rng.lognormal(-(load.tail**2) / 2, load.tail, len(own))
    slow = {Fault.NVME_SLOW: (1,), Fault.REMOTE_SLOW: (2,), Fault.TWO: (1,)}.get(load.fault, ())
    service[work.during[own]] *= load.strength if number in slow else 1.0
    at = ready[own]
    if load.fault is Fault.NVME_QUEUE and number == 1:
        other = np.repeat(np.arange(load.start_s, load.end_s, 1.0), int(8 * load.strength)) + rng.uniform(0, 0.05)
        at, service = np.concatenate([at, other]), np.concatenate([service, np.full(len(other), 0.012)])
    waited = _waits(at, _stalled(load, at, service, rng))
    return waited[: len(own)], service[: len(own)]


def _stalled(load: Load, at: FloatArray, service: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Service times, some of them with a pause of the whole machine."""
    pauses = np.zeros_like(service)
    hiccups = rng.integers(0, max(len(at), 1), rng.poisson(load.run_s * load.hiccups_per_s))
    pauses[hiccups] = rng.exponential(0.08, len(hiccups))
    return np.asarray(service + pauses)


def _waits(at: FloatArray, service: FloatArray) -> FloatArray:
    """How long each waits for one server, first come first served (Lindley's recursion as running minima)."""
    order = np.argsort(at, kind="stable")
    gained = np.concatenate([[0.0], np.cumsum(service[order][:-1] - np.diff(at[order]))])
    waits = np.empty_like(gained)
    waits[order] = gained - np.minimum.accumulate(gained)
    return waits


def _compute(load: Load, work: _Work, ready: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Waiting for the one that computes, and being computed."""
    todo = work.tokens * (1 - work.hit)
    service = (0.002 + todo / 60_000) * rng.lognormal(-0.02, 0.2, len(ready))
    if load.fault is Fault.TWO:
        service[work.during] *= 1 + 0.2 * load.strength
    return _waits(ready, _stalled(load, ready, service, rng)), service


def _spread(own: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Values of some requests among all."""
    spread = np.zeros(size)
    spread[own] = values
    return spread


def _population(work: _Work, spent: dict[Cause, FloatArray]) -> Population:
    """Whole nanoseconds."""
    amounts = np.stack([(spent[cause] * SECOND).astype(np.int64) for cause in CAUSES], axis=1)
    return Population(
        causes=CAUSES,
        arrived_ns=(work.at * SECOND).astype(np.int64),
        latency_ns=amounts.sum(axis=1),
        censored=np.zeros(len(amounts), dtype=np.bool_),
        amounts_ns=amounts,
        prompt_tokens=work.tokens,
        model=np.zeros_like(work.tenant),
        tenant=work.tenant,
        place=np.arange(len(amounts)),
    )
