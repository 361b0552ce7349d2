"""A gate before real runs of the engine, and storms. `KVTRAIL_LONG=1` makes forty runs, and twenty storms: half an hour."""

from __future__ import annotations

import os

import pytest
from kvtrail_cli.drill.gate import GatePlan, run_gates, run_worse
from kvtrail_cli.drill.storm import run_storms

IS_LONG = os.environ.get("KVTRAIL_LONG") == "1"
SHORT_S = 6.5


def test_a_worse_run_fails() -> None:
    """A step that takes twice as long is found out in seven seconds of load."""
    found = run_worse(GatePlan(1, 0, SHORT_S), "slow-decode")

    assert found.is_right, found
    assert {"tpot_p50_ratio"} <= set(found.failed)


@pytest.mark.skipif(not IS_LONG, reason="a quarter of an hour: KVTRAIL_LONG=1")
@pytest.mark.timeout(3_600)
def test_twenty_equal_runs_pass_and_twenty_worse_ones_fail() -> None:
    """Forty of forty."""
    found = run_gates(GatePlan(20, 0), lambda _done, _total: None)

    assert found.passed, [run for run in found.runs if not run.is_right]


@pytest.mark.skipif(not IS_LONG, reason="a quarter of an hour: KVTRAIL_LONG=1")
@pytest.mark.timeout(3_600)
def test_twenty_storms_end_in_time() -> None:
    """Applied within ten seconds at P95, the tail back to what it was, and each action released."""
    found = run_storms(20, 0, lambda _done, _total: None)

    assert found.passed, found
