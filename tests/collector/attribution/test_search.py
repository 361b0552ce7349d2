"""The search for spikes where a glance at all latencies is not enough: two spells in a run, or one small queue that fills."""

from collections.abc import Iterator

import numpy as np
import pytest
from kvtrail_collector.attribution import attribute
from kvtrail_collector.facts_rows import Interval
from kvtrail_collector.window import choose
from kvtrail_collector.window_scan import find_pairs, find_spells
from kvtrail_collector.window_search import MAX_P_VALUE, search_windows
from kvtrail_collector.window_series import Series, series_of
from kvtrail_schema.events import (
    Event,
    PrefillChunk,
    RequestArrived,
    RequestFirstToken,
    StepFinished,
    StepStarted,
)
from kvtrail_schema.identity import RequestId, StepId
from kvtrail_schema.reasons import PrefillReason
from msgspec.structs import replace

from tests.collector.attribution.populations import MS, population
from tests.collector.attribution.queueing import SECOND, Fault, Load, simulate
from tests.collector.attribution.synthetic import TENANT, stream_table

RATE_PER_S = 40
FIRST, SECOND_SPELL = (100 * SECOND, 130 * SECOND), (210 * SECOND, 240 * SECOND)


def spells(seed: int, *ill: Interval, slow_ms: int = 80, run_s: int = 300) -> "tuple[np.ndarray, np.ndarray]":
    """Restless requests, a quarter of which is slower within some stretches: when they came, and how long each took."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.uniform(0, run_s * SECOND, run_s * RATE_PER_S)).astype(np.int64)
    mood = np.repeat(rng.normal(0, 0.3, run_s // 2 + 1), 2)[(at // SECOND).astype(int)]
    latency = 15 * MS * np.exp(rng.normal(0, 0.4, len(at)) + mood)
    inside = np.zeros(len(at), dtype=np.bool_)
    for start, end in ill:
        inside |= (at >= start) & (at < end)
    return at, np.where(inside & (rng.random(len(at)) < 0.25), latency + slow_ms * MS, latency).astype(np.int64)


def is_near(found: Interval, true: Interval) -> bool:
    """Whether both borders are right to five seconds."""
    return abs(found[0] - true[0]) < 5 * SECOND and abs(found[1] - true[1]) < 5 * SECOND


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_both_of_two_spells_are_found(seed: int) -> None:
    """However alike they are, both are told, and neither is in what the other is compared with."""
    at, latency = spells(seed, FIRST, SECOND_SPELL)
    requests = population([[ns] for ns in latency.tolist()], at=at)
    found = search_windows(requests, seed=seed)
    choice = choose(requests, found[0], None, others=found[1:], seed=seed)

    assert len(found) == 2
    assert all(any(is_near(own, true) for own in found) for true in (FIRST, SECOND_SPELL))
    assert choice is not None
    assert choice.others == tuple(found[1:])
    assert choice.reference[0] >= choice.others[0][1] or choice.reference[1] <= choice.others[0][0]


def computed(seed: int) -> Iterator[Event]:
    """Requests that are computed one after the other for 300 s, some of them slowly within two stretches."""
    rng = np.random.default_rng(seed)
    free_ns = 0
    for number, at_ns in enumerate(np.sort(rng.uniform(0, 300 * SECOND, 3_600)).astype(np.int64).tolist(), start=1):
        is_ill = any(start <= at_ns < end for start, end in (FIRST, SECOND_SPELL)) and rng.random() < 0.3
        start_ns = max(free_ns, at_ns)
        free_ns = start_ns + (90 * MS if is_ill else int(rng.uniform(5, 15) * MS))
        req = RequestId(number)
        yield RequestArrived(t_ns=at_ns, req=req, tokens=64, ns=TENANT, text=f"r{number}")
        yield StepStarted(t_ns=start_ns, step=StepId(number))
        yield PrefillChunk(t_ns=start_ns, req=req, step=StepId(number), tokens=64, reason=PrefillReason.NEW)
        yield StepFinished(t_ns=free_ns, step=StepId(number), tokens=64, prefill_tokens=64)
        yield RequestFirstToken(t_ns=free_ns, req=req)


def test_the_answer_tells_of_the_other_spike() -> None:
    """Who asks for the spike of a run with two gets the worse one explained, and is told where the other is."""
    ordered = sorted(computed(0), key=lambda event: event.t_ns)
    answer = attribute(stream_table([replace(event, seq=seq) for seq, event in enumerate(ordered, start=1)]), seed=1)
    other = answer.other_spikes[0]

    assert answer.window is not None
    found = [(answer.window.start_ns, answer.window.end_ns), (other.start_ns, other.end_ns)]
    assert len(answer.other_spikes) == 1
    assert all(any(is_near(own, true) for own in found) for true in (FIRST, SECOND_SPELL))
    assert other.requests > 200


@pytest.mark.parametrize("seed", [0, 4])
def test_two_spells_are_judged_together(seed: int) -> None:
    """Where each of two spells is as little as chance by itself, both together are not."""
    at, latency = spells(seed, FIRST, SECOND_SPELL, slow_ms=25)
    own = [Series(at, latency)]
    alone = min(spell.p_value for spell in find_spells(own, seed=0))
    together = min(pair[0].p_value for pair in find_pairs(own, seed=0))

    assert together <= MAX_P_VALUE
    assert alone > MAX_P_VALUE


def test_what_is_left_out_closes_its_gap() -> None:
    """Requests in the stretch are gone, later ones come earlier by its length, earlier ones stay."""
    series = Series(np.array([1, 5, 6, 9]), np.array([10, 20, 30, 40])).without((5, 8))

    assert series.arrived_ns.tolist() == [1, 6]
    assert series.latency_ns.tolist() == [10, 40]


@pytest.mark.parametrize("seed", [0, 2])
def test_a_queue_that_fills_is_found_in_a_restless_run(seed: int) -> None:
    """A wait of its own that only some have, lost among all that they wait for, is found where it is."""
    at, latency = spells(seed)
    rng = np.random.default_rng(seed)
    ill = (at >= FIRST[0]) & (at < FIRST[1]) & (rng.random(len(at)) < 0.1)
    waited = np.where(ill, rng.exponential(12 * MS, len(at)), rng.exponential(0.2 * MS, len(at))).astype(np.int64)
    requests = population(np.stack([latency, waited], axis=1).tolist(), at=at)
    found = search_windows(requests, seed=seed)

    assert min(spell.p_value for spell in find_spells(series_of(requests), seed=seed)) > MAX_P_VALUE
    assert len(found) == 1
    assert is_near(found[0], FIRST)


@pytest.mark.parametrize("seed", range(2))
def test_a_fault_of_one_queue_is_one_spike(seed: int) -> None:
    """One spell in a system whose queues remember is one spike, not several."""
    found = search_windows(simulate(Load(seed, Fault.NVME_SLOW, 4.0, bursts=0.2, tail=0.4, hiccups_per_s=0.01)), seed=seed)

    assert len(found) == 1
    assert found[0][0] < 125 * SECOND < found[0][1]
