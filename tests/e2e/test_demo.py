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
SEEDS = range(21, 26) if LONG else range(21, 22)
FAULTS = list(EXPECTED) if LONG else ["nvme-slow"]
LOAD_S = 95 if LONG else 60


@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_injected_cause_is_found(tmp_path: Path, fault: str, seed: int) -> None:
    """The first verdict names what was injected, nothing is named where nothing was, and every event is accounted for."""
    command = [*KVTRAIL, "demo", "--headless", "--json", "--fault", fault, "--seed", str(seed), "--duration", str(LOAD_S)]
    done = subprocess.run([*command, "--dir", str(tmp_path / "demo")], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    verdicts = [(verdict["code"], verdict["tier"]) for verdict in answer["verdicts"]]
    books = answer["events"]
    assert books["produced"] == books["stored"] + books["dropped"]
    assert books["unaccounted"] == 0
    assert answer["injected"]["fault"] == fault
    assert verdicts[:1] == ([EXPECTED[fault]] if EXPECTED[fault] else [])
