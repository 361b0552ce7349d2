"""The traps of comparing tails, one by one: each looks like something else at first sight."""

from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from kvtrail_collector.attribution_compare import comparability, comparisons
from kvtrail_collector.attribution_strata import cells_of, strata_of
from kvtrail_collector.attribution_tail import excess_of
from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.population import Population

from tests.collector.attribution.naming import MIX, named
from tests.collector.attribution.populations import MS, population
from tests.collector.attribution.queueing import SECOND, Fault, Load, simulate

WINDOW = (90 * SECOND, 130 * SECOND)
QUIET = Load(0, run_s=150, rate_per_s=40, start_s=90, end_s=130, bursts=0.05, tail=0.3, hiccups_per_s=0.01)


def kinds(amounts: list[list[int]], prompt_tokens: list[int], seed: int) -> Population:
    """Requests with these prompts, in an order that says nothing."""
    order = np.random.default_rng(seed).permutation(len(amounts))
    made = population([amounts[place] for place in order])
    return replace(made, prompt_tokens=np.array(prompt_tokens)[order])


def short_and_long(short: int, long: int, seed: int, *, slower: float = 1.0) -> Population:
    """Short prompts that take 10 ms and long ones that take 100 ms, nearly; what they read may be slower."""
    rng = np.random.default_rng(seed)
    rows = [[0, int(slower * rng.gamma(9, 0.5) * MS), int(rng.gamma(9, 0.6) * MS)] for _ in range(short)]
    rows += [[0, int(slower * rng.gamma(9, 5) * MS), int(rng.gamma(9, 6) * MS)] for _ in range(long)]
    return kinds(rows, [100] * short + [4_000] * long, seed)


def first(window: Population, reference: Population) -> "tuple[float, float, bool, bool]":
    """Mix and within in ms at the highest quantile, and whether that is lifted, or mix alone."""
    able = comparability(window, reference)
    one = next(comparisons(window, reference, able, min_lift_ns=5 * MS, searched=False, seed=1))
    return float(one.excess.mix_ns) / MS, float(one.excess.within_ns) / MS, one.is_lifted, one.is_mix


@pytest.mark.parametrize("seed", range(3))
def test_mix_alone(seed: int) -> None:
    """Three times as many long prompts make P95 worse; no request of either kind became slower, and that is what is said."""
    mix_ms, within_ms, is_lifted, is_mix = first(short_and_long(600, 90, seed), short_and_long(1_500, 60, seed + 50))

    assert mix_ms > 20
    assert abs(within_ms) < 10
    assert (False, True) == (is_lifted, is_mix)


@pytest.mark.parametrize("seed", range(3))
def test_mix_and_a_fault(seed: int) -> None:
    """Where the mix shifts and reads get slower, both have their share, and the reads are not explained away."""
    found = first(short_and_long(600, 90, seed, slower=3.0), short_and_long(1_500, 60, seed + 50))
    mix_ms, within_ms, is_lifted, is_mix = found

    assert mix_ms > 20
    assert within_ms > 60
    assert (True, False) == (is_lifted, is_mix)


def test_the_tier_of_a_hit_is_no_stratum() -> None:
    """A fault that moves hits from host to nvme makes requests slow; comparing nvme with nvme would explain that away."""
    rng = np.random.default_rng(1)

    def served(nvme: int, host: int) -> Population:
        """Requests of one kind, of which some read from nvme."""
        rows = [[0, int(rng.gamma(9, 9) * MS), 5 * MS] for _ in range(nvme)] + [
            [0, int(rng.gamma(9, 1) * MS), 5 * MS] for _ in range(host)
        ]
        return kinds(rows, [500] * (nvme + host), 1)

    mix_ms, within_ms, is_lifted, _ = first(served(400, 300), served(20, 1_400))

    assert mix_ms == 0
    assert within_ms > 50
    assert is_lifted


def of_arrival(requests: Population) -> tuple[IntArray, IntArray, IntArray]:
    """What arrives with requests."""
    return requests.prompt_tokens, requests.model, requests.tenant


def test_nothing_but_arrival_is_in_a_stratum() -> None:
    """Strata depend on prompt, model and tenant, and on nothing that happened afterwards."""
    one, other = short_and_long(100, 50, 1), short_and_long(100, 50, 1, slower=9.0)
    censored = replace(other, censored=~other.censored, amounts_ns=other.amounts_ns[::-1], latency_ns=other.latency_ns[::-1])

    assert np.array_equal(strata_of(one, one).window, strata_of(censored, censored).window)
    assert np.array_equal(cells_of(*of_arrival(one)), cells_of(*of_arrival(censored)))


def test_a_hung_tier_does_not_make_p99_look_better() -> None:
    """Where 3 % of requests hang, the others' P99 is better than before: P99 is not known, which is said, and P95 serves."""
    before, rows = population([[0, 90 * MS, 0]] * 300 + [[0, 10 * MS, 0]] * 9_700), [[0, 10 * MS, 0]] * 9_700
    during = population([*rows, *[[0, 40 * MS, 0]] * 300])
    hung = replace(during, censored=during.latency_ns == 40 * MS)
    able = comparability(hung, before)

    assert (Fraction(95, 100), Fraction(90, 100)) == able.quantiles
    assert able.notes == ("P99 is not known: 300 of 10000 requests of the window got no first token",)


def test_all_hang() -> None:
    """Where no quantile is known, no figure is given in its place."""
    before = population([[10 * MS]] * 4_000)
    able = comparability(replace(before, censored=np.arange(4_000) % 2 == 0), before)

    assert able.quantiles == ()
    assert able.unknown == "P99 is not known: 2000 of 4000 requests of the window got no first token"


def test_too_few_in_the_tail() -> None:
    """A P99 of 500 requests is the fate of five of them: a lower quantile is used."""
    few, many = population([[10 * MS]] * 500), population([[10 * MS]] * 9_000)

    assert (Fraction(90, 100),) == comparability(few, many).quantiles
    assert comparability(population([[10 * MS]] * 50), many).quantiles == ()


def test_ties() -> None:
    """Times in whole tens of milliseconds tie at the quantile: the tail has its exact mass all the same."""
    reference = population([[10 * MS, 0, 0]] * 970 + [[50 * MS, 0, 0]] * 30)
    window = population([[10 * MS, 0, 0]] * 950 + [[20 * MS, 30 * MS, 0]] * 50)
    excess = excess_of(window, reference, Fraction(95, 100), strata_of(window, reference))

    assert Fraction(50 * MS) - Fraction(30 * 50 + 20 * 10, 50) * MS == excess.within_ns
    assert Fraction(30 * MS) == excess.causes_ns[1]


def test_nothing_like_it() -> None:
    """A window of requests that the reference has nothing like is not compared, and that is said."""
    able = comparability(short_and_long(10, 600, 1), short_and_long(2_000, 0, 2))

    assert able.quantiles == ()
    assert "has nothing like most requests" in (able.unknown or "")


@pytest.mark.parametrize(
    ("fault", "cause"), [(Fault.LOOKUP, "lookup"), (Fault.REMOTE_SLOW, "remote"), (Fault.NVME_QUEUE, "nvme")]
)
def test_each_fault_is_named(fault: Fault, cause: str) -> None:
    """Through queues, a broken mechanism is what is named, in a window that was found and in one that was given."""
    load = replace(QUIET, seed=3, fault=fault, strength=5.0)

    assert [cause, cause] == [named(simulate(load), window, seed=3) for window in (None, WINDOW)]


def test_long_prompts_of_a_neighbour() -> None:
    """What a newcomer's own prompts cost is mix; that others wait behind them is the cause."""
    load = replace(QUIET, seed=5, fault=Fault.LONG_PROMPTS, strength=5.0)

    assert named(simulate(load), WINDOW, seed=5) == "sched_wait.budget"


def test_mix_through_queues() -> None:
    """More long prompts in a system that is far from full: the mix, and no cause."""
    load = replace(QUIET, seed=7, rate_per_s=15, run_s=600, start_s=400, end_s=560, mix=0.12, bursts=0.02)

    assert named(simulate(load), (400 * SECOND, 560 * SECOND), seed=7) == MIX


def test_a_fault_in_the_reference() -> None:
    """A second fault is named although the reference has one like it: that one is cut out."""
    one, other = (
        simulate(replace(QUIET, seed=9, fault=Fault.LOOKUP, strength=5.0, start_s=start, end_s=start + 20))
        for start in (40, 129)
    )
    early, late = one.arrived_in(0, 80 * SECOND), other.arrived_in(80 * SECOND, 200 * SECOND)
    columns = [field.name for field in fields(other) if field.name != "causes"]
    joined: dict[str, Any] = {name: np.concatenate([getattr(early, name), getattr(late, name)]) for name in columns}
    both = replace(other, **joined)

    assert named(both, (129 * SECOND, 149 * SECOND), seed=9) == "lookup"
