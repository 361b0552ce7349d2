"""How busy others were: what is ours is not theirs."""

import time
from pathlib import Path

import msgspec
import pytest
from kvtrail_cli.drill.machine import CpuTimes, others_share
from kvtrail_cli.drill.score import accuracy_of

from tests.cli.drill.test_score import run


def test_what_we_do_is_not_others() -> None:
    """Of 100 seconds of two processors 60 were busy, 50 of them ours: others took a tenth."""
    before, after = CpuTimes(1000, 400, 10), CpuTimes(1100, 460, 60)

    assert others_share(before, after) == pytest.approx(0.1)


def test_what_is_not_known_is_not_zero() -> None:
    """Where the system does not say, or no time has passed, nothing is claimed."""
    now = CpuTimes(1, 1, 1)

    assert others_share(None, now) is None
    assert others_share(now, now) is None


def test_the_system_is_asked() -> None:
    """Times only grow, and a share is one; a system that does not say is none that counts nothing."""
    before = CpuTimes.now()
    time.sleep(0.05)
    after = CpuTimes.now()

    assert (before is None) is (after is None) is (not Path("/proc/stat").exists())
    if before is not None and after is not None:
        share = others_share(before, after)
        assert after.total_s > before.total_s
        assert after.own_s >= before.own_s
        assert share is not None
        assert 0 <= share <= 1


def test_disturbed_runs_are_named() -> None:
    """A run during which others took much of the machine is named in the answer."""
    quiet = run("a", "A", right=True)
    loud = msgspec.structs.replace(run("b", "B", right=True), others_busy=0.4)

    assert accuracy_of("live", [quiet, loud]).disturbed == (loud.name,)
