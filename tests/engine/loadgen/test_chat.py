"""The built-in chats: a function of their seed, steady in rate, growing in turns."""

import itertools

import pytest
from kvtrail_engine.demo import demo_requests
from kvtrail_engine.loadgen.chat import ChatSettings, chat_arrivals

SETTINGS = ChatSettings(seed=1, duration_s=40, rate_per_s=25)


def test_the_same_seed_gives_the_same_load() -> None:
    """Everything about a load follows from its settings."""
    first, second = chat_arrivals(SETTINGS), chat_arrivals(SETTINGS)

    assert [(a.at_ns, a.spec.name, a.spec.prompt.tolist()) for a in first] == [
        (a.at_ns, a.spec.name, a.spec.prompt.tolist()) for a in second
    ]


def test_a_turn_begins_with_the_turn_before_it() -> None:
    """Each turn's prompt extends the last one's, so that a cache has something to find."""
    by_name = {arrival.spec.name: arrival.spec for arrival in chat_arrivals(SETTINGS)}
    later = [
        (spec, by_name[f"{name.rpartition('-')[0]}-{int(name.rpartition('-')[2]) - 1}"])
        for name, spec in by_name.items()
        if not name.endswith("-0")
    ]

    assert len(later) > len(by_name) / 2
    assert all(spec.prompt[: len(before.prompt)].tolist() == before.prompt.tolist() for spec, before in later)
    assert all(spec.tenant == before.tenant for spec, before in later)


def test_arrivals_come_in_order_at_their_rate() -> None:
    """The rate is the one asked for, in the first half as in the second."""
    arrivals = chat_arrivals(ChatSettings(seed=2, duration_s=200, rate_per_s=25))
    halves = [sum((a.at_ns < 100e9) == is_first for a in arrivals) for is_first in (True, False)]

    assert all(before.at_ns <= after.at_ns for before, after in itertools.pairwise(arrivals))
    assert halves == [pytest.approx(2500, rel=0.1)] * 2


def test_prompts_stay_within_their_bounds() -> None:
    """No prompt is longer than the settings allow."""
    lengths = [len(arrival.spec.prompt) for arrival in demo_requests(3)]

    assert min(lengths) >= 112
    assert max(lengths) <= 512
