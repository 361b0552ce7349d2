"""A gate fails what got worse, passes what did not, and says where it does not know."""

from __future__ import annotations

import os

import httpx
import numpy as np
import pytest
from kvtrail_collector.gate import Findings, judge_gate, manifest_diff
from kvtrail_collector.gate_shapes import Condition, Gate, GateEvent, GateResult
from kvtrail_collector.gate_side import Side
from kvtrail_collector.testing import running_collector
from kvtrail_schema.batch import CONTENT_TYPE

from tests.collector.frames import frame, span

MS = 1_000_000
SOUND = Findings((), (), 0)
SEEDS = range(20 if os.environ.get("KVTRAIL_LONG") == "1" else 4)


def side(seed: int, size: int = 2_000, slower: float = 1.0, rejected: int = 0, broken: int = 0) -> Side:
    """A run whose latencies wander and have a tail, as queues make them."""
    random = np.random.default_rng(seed)
    wander = np.exp(0.1 * np.convolve(random.normal(size=size + 50), np.ones(50) / 7, "valid")[:size])
    ttft = slower * wander * random.lognormal(3.0, 0.5, size) * MS
    tpot = slower * random.lognormal(2.0, 0.2, size) * MS
    event = GateEvent("chat", 1, 0, 1)
    return Side(size, rejected, ttft, tpot, (event,), (event,) * broken, {})


def judged(candidate: Side, found: Findings = SOUND) -> Gate:
    """The candidate against a sound baseline."""
    return judge_gate(side(1_000), candidate, found, {})


def named(gate: Gate, name: str) -> Condition:
    """One condition."""
    return next(condition for condition in gate.conditions if condition.name == name)


def test_an_equal_candidate_passes() -> None:
    """In every run: 20 of 20 in the long form."""
    assert [GateResult.PASS] * len(SEEDS) == [judged(side(seed)).result for seed in SEEDS]


def test_a_regression_fails() -> None:
    """In every run (20 of 20 in the long form), with the figures, the interval and the events behind it."""
    found = [judged(side(seed, slower=1.6)) for seed in SEEDS]
    tail = named(found[0], "ttft_p95_ratio")

    assert [GateResult.FAIL] * len(SEEDS) == [gate.result for gate in found]
    assert tail.low is not None
    assert tail.low > 1.0
    assert (GateEvent("chat", 1, 0, 1),) == tail.events


def test_too_little_is_undecided() -> None:
    """A handful of requests proves nothing, neither way."""
    assert GateResult.UNDECIDED is judged(side(1, size=50)).result
    assert GateResult.UNDECIDED is judged(side(1, size=50, slower=9.0)).result


@pytest.mark.parametrize(
    ("candidate", "found", "name"),
    [
        (side(1, rejected=200), SOUND, "rejected_share"),
        (side(1, broken=1), SOUND, "broken_loads"),
        (side(1), Findings(("NAMESPACE_VIOLATION",), (), 0), "invariants"),
        (side(1), Findings((), ("prefetch",), 0), "settings_not_active"),
        (side(1), Findings((), (), 3), "unaccounted_events"),
    ],
)
def test_what_must_not_be_fails(candidate: Side, found: Findings, name: str) -> None:
    """Refusals, broken loads, invariants, settings without effect, and lost events, however fast it is."""
    gate = judged(candidate, found)

    assert GateResult.FAIL is gate.result
    assert GateResult.FAIL is named(gate, name).result


def test_a_failure_outweighs_what_is_undecided() -> None:
    """Little data is no excuse for a broken load."""
    assert GateResult.FAIL is judged(side(1, size=50, broken=1)).result


def test_the_same_runs_give_the_same_answer() -> None:
    """What is drawn is drawn from a seed."""
    assert judged(side(7)) == judged(side(7))


def test_manifests_are_compared_member_by_member() -> None:
    """What is new, gone, or changed, however deep; what differs from start to start is no difference."""
    before = {"versions": {"torch": "2.5", "engine": "1"}, "block_tokens": 32, "memory_used_bytes": 1, "tls": None}
    after = {"versions": {"torch": "2.6", "engine": "1"}, "block_tokens": 32, "memory_used_bytes": 9, "gpu": "another"}
    found = [(each.member, each.baseline, each.candidate) for each in manifest_diff(before, after)]

    assert [("gpu", None, '"another"'), ("tls", "null", None), ("versions.torch", '"2.5"', '"2.6"')] == found


def test_a_collector_compares_runs_that_it_has() -> None:
    """Named by engine and epoch; one that is not there is not found, and a threshold that is none is refused."""
    with running_collector() as running, httpx.Client(base_url=running.url, trust_env=False, timeout=30) as client:
        for engine in ("old", "new"):
            body = frame(span(1, 80), engine=engine)
            client.post("/v1/events", content=body, headers={"content-type": CONTENT_TYPE}).raise_for_status()
        given = {"baseline": "old@7", "candidate": "new"}
        answer = client.get("/v1/gates", params=given).json()

        assert "undecided" in {condition["result"] for condition in answer["conditions"]}
        assert 404 == client.get("/v1/gates", params={**given, "candidate": "other"}).status_code
        assert 422 == client.get("/v1/gates", params={**given, "threshold": "luck=1"}).status_code
        assert 422 == client.get("/v1/gates", params={**given, "baseline": "old@x"}).status_code
