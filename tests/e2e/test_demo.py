"""The demo as a newcomer runs it: a fault that it does not tell its diagnosis, and the right name for it at the end."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.parts import KVTRAIL

EXPECTED = {
    "nvme-slow": ("TIER_SLOW", "nvme"),
    "nvme-queue": ("TIER_QUEUE", "nvme"),
    "long-prefill": ("SCHED_QUEUE", None),
    "none": None,
}
LONG = os.environ.get("KVTRAIL_LONG") == "1"
SEEDS = range(21, 26)
LOAD_S = 95 if LONG else 60
ATTEMPTS = 3


def found(directory: Path, fault: str, seed: int) -> list[tuple[str, str | None]]:
    """Run the demo; its verdicts. The books balance, whatever was found."""
    command = [*KVTRAIL, "demo", "--headless", "--json", "--fault", fault, "--seed", str(seed), "--duration", str(LOAD_S)]
    done = subprocess.run([*command, "--dir", str(directory)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    books = answer["events"]
    assert books["produced"] == books["stored"] + books["dropped"]
    assert books["unaccounted"] == 0
    assert answer["injected"]["fault"] == fault
    return [(verdict["code"], verdict["tier"]) for verdict in answer["verdicts"]]


@pytest.mark.skipif(not LONG, reason="half an hour: KVTRAIL_LONG=1")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", EXPECTED)
def test_each_cause_is_found(tmp_path: Path, fault: str, seed: int) -> None:
    """On a machine of its own the first verdict names what was injected, and nothing is named where nothing was."""
    expected = EXPECTED[fault]

    assert ([expected] if expected else []) == found(tmp_path / "demo", fault, seed)[:1]


@pytest.mark.skipif(LONG, reason="the long form is stricter")
@pytest.mark.timeout(500)
def test_the_injected_cause_is_found(tmp_path: Path) -> None:
    """The first verdict names what was injected. A starved machine may make it abstain and try again, never name another."""
    for seed in SEEDS[:ATTEMPTS]:
        verdicts = found(tmp_path / "demo", "nvme-slow", seed)

        assert verdicts[:1] in ([], [("TIER_SLOW", "nvme")])
        if verdicts:
            return
    pytest.fail(f"no verdict in {ATTEMPTS} runs")
