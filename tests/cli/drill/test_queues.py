"""Queues that are run anew: as a slow, obvious simulation would run them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_cli.drill.generated.queues import StepCosts, run_steps, served
from kvtrail_collector.facts_rows import IntArray

COSTS = StepCosts(budget_tokens=64, step_ns=1000, prefill_token_ns=10, decode_token_ns=20)


def ints(values: list[int]) -> IntArray:
    """A column."""
    return np.array(values, dtype=np.int64)


def obvious(queued: list[int], service: list[int], workers: int) -> list[int]:
    """Each op takes the worker that is free first."""
    free = [0] * workers
    started = []
    for at, length in zip(queued, service, strict=True):
        worker = free.index(min(free))
        started.append(max(at, free[worker]))
        free[worker] = started[-1] + length
    return started


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 40)), min_size=1, max_size=60),
    st.integers(1, 4),
)
def test_ops_are_served_first_come_first_served(ops: list[tuple[int, int]], workers: int) -> None:
    """Whatever the number of workers, starts are those of the obvious simulation."""
    queued = np.cumsum([gap for gap, _ in ops]).tolist()
    service = [length for _, length in ops]

    assert obvious(queued, service, workers) == served(ints(queued), ints(service), workers).tolist()


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 300), st.integers(1, 6)), min_size=1, max_size=40))
def test_every_prompt_is_computed_within_the_budget(requests: list[tuple[int, int, int]]) -> None:
    """All tokens are computed, once, not before their request is ready; no step has more than its budget, none overlap."""
    ready, todo, outputs = (ints(list(column)) for column in zip(*requests, strict=True))
    steps = run_steps(ready, todo, outputs, COSTS, ints([0]))
    computed = np.bincount(steps.chunk_request, weights=steps.chunk_tokens, minlength=len(requests))

    assert computed.tolist() == todo.tolist()
    assert (steps.start_ns[steps.chunk_step] >= ready[steps.chunk_request]).all()
    assert (steps.prefill_tokens + steps.decode_tokens <= COSTS.budget_tokens).all()
    assert (steps.start_ns[1:] > steps.end_ns[:-1]).all()


def test_who_decodes_takes_from_the_budget() -> None:
    """A request that decodes has a token in each step until its last one."""
    steps = run_steps(ints([0, 10]), ints([32, 320]), ints([4, 1]), COSTS, ints([0]))

    assert steps.decode_tokens.tolist()[:5] == [0, 1, 1, 1, 0]


@pytest.mark.parametrize("factor", [2, 4])
def test_steps_take_what_they_cost(factor: int) -> None:
    """A step's length is its constant, its prefill tokens and its decode tokens, and the noise that is given."""
    steps = run_steps(ints([0]), ints([32 * factor]), ints([1]), COSTS, ints([7]))

    assert (steps.end_ns - steps.start_ns).tolist() == [1000 + 10 * tokens + 7 for tokens in steps.prefill_tokens.tolist()]
