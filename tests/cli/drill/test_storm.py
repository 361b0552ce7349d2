"""What storms and gated runs come to: summed up as promised, whatever single runs did. The runs themselves are in tests/e2e."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest
from kvtrail_cli.drill.gate import GatePlan, gates_of
from kvtrail_cli.drill.gate_load import EQUAL, REGRESSIONS, gate_arrivals, gate_settings
from kvtrail_cli.drill.gate_shapes import GateRun
from kvtrail_cli.drill.storm import Latencies, by_stretch, storms_of
from kvtrail_cli.drill.storm_shapes import StormRun
from kvtrail_cli.engine_session import Session
from kvtrail_engine.request import Outcome, RequestResult
from kvtrail_engine.run import RunResult
from kvtrail_schema.identity import RequestId

S = 1_000_000_000
SESSION = Session(RunResult("cpu-emulated", "floors: none", 0, 1, ()), 1, 1, delivered=True)
GOOD = StormRun(0, 3.0, 12.0, stalled=False, fired=1, reference_p99_ms=10.0, storm_p99_ms=90.0, after_p99_ms=11.0)


def latencies(before_ms: float, after_ms: float, storm_ms: float = 90.0) -> Latencies:
    """A run in which every request of a stretch took as long."""
    return Latencies([int(before_ms * 1e6)] * 10, [int(storm_ms * 1e6)] * 10, [int(after_ms * 1e6)] * 10)


def request(arrived_s: float, ttft_s: float | None) -> RequestResult:
    """A request; without a time to its first token it ended after five seconds."""
    arrived_ns = int(arrived_s * S)
    first_ns = None if ttft_s is None else arrived_ns + int(ttft_s * S)
    ended_ns = arrived_ns + 5 * S
    return RequestResult("r", RequestId(1), "t", Outcome.FINISHED, 8, arrived_ns, first_ns, ended_ns, (), {}, 8)


@pytest.mark.parametrize(
    ("changed", "after_ms", "passed"),
    [
        ({}, 12.9, True),
        ({}, 13.1, False),
        ({"applied_s": 10.1}, 11.0, False),
        ({"applied_s": None}, 11.0, False),
        ({"released_s": None}, 11.0, False),
        ({"stalled": True}, 11.0, False),
    ],
)
def test_storms_pass_where_all_that_is_promised_holds(changed: dict[str, object], after_ms: float, passed: bool) -> None:
    """In time, well again, released and never stalled; P95 of few runs is the worst of them."""
    runs = [GOOD, msgspec.structs.replace(GOOD, **changed)]
    found = storms_of(runs, [latencies(10.0, after_ms)] * 2, SESSION)

    assert passed is found.passed
    assert (10.0, 90.0, after_ms) == (found.reference_p99_ms, found.storm_p99_ms, found.after_p99_ms)


def test_a_storm_that_nobody_feels_proves_nothing() -> None:
    """An action that comes in time for nothing is no pass: the tail has to have been plainly worse."""
    found = [storms_of([GOOD], [latencies(10.0, 11.0, storm_ms)], SESSION).passed for storm_ms in (29.9, 30.1)]

    assert [False, True] == found


def test_a_request_counts_where_it_arrived() -> None:
    """Warm-up and the two seconds after the action count nowhere; who got no token counts with all its time."""
    arrived = [13.0, 15.0, 20.5, 23.0, 25.0]
    found = by_stretch([*(request(at, 0.5) for at in arrived), request(21.0, None)], 0, 20 * S, int(22.5 * S))

    assert ([S // 2], [S // 2, 5 * S], [S // 2]) == found


def test_a_gate_is_asked_of_as_many_equal_as_worse_candidates() -> None:
    """Each change in its turn, each against a baseline of its own seed."""
    asked = list(GatePlan(20, 0).candidates())

    assert 20 == Counter(change for _, change in asked)[EQUAL]
    assert set(REGRESSIONS) | {EQUAL} == {change for _, change in asked}
    assert {0, 1, 2, 3} == {seed for seed, _ in asked}


def test_the_runs_of_a_gate_are_the_same_but_for_the_change(tmp_path: Path) -> None:
    """The same seed is the same load; each change changes the engine."""
    first, again = gate_arrivals(3, 2.0), gate_arrivals(3, 2.0)
    equal = gate_settings(3, tmp_path)

    assert [each.at_ns for each in first] == [each.at_ns for each in again]
    assert all(np.array_equal(one.spec.prompt, two.spec.prompt) for one, two in zip(first, again, strict=True))
    assert all(equal != gate_settings(3, tmp_path, change) for change in REGRESSIONS)


def test_one_wrong_answer_of_a_gate_is_too_many() -> None:
    """An undecided gate is no passed one."""
    right = GateRun(EQUAL, 0, "pass", "pass", (), ())
    wrong = GateRun(EQUAL, 1, "undecided", "pass", (), ("ttft_p95_ratio",))
    worse = GateRun("cold", 0, "fail", "fail", ("ttft_p50_ratio",), ())
    good, bad = gates_of([right, worse], SESSION, 1.0), gates_of([right, wrong, worse], SESSION, 1.0)

    assert (True, 1, 1) == (good.passed, good.equal_passed, good.regressions_failed)
    assert (False, 1, 2) == (bad.passed, bad.equal_passed, bad.equal)
