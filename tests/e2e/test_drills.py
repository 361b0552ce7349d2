"""The drills that take whole processes away: the device of an engine, and the broker between engine and collector."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from kvtrail_cli.drill.safety import DRILLS

from tests.broker import PARTS, jars


def test_device_reset(tmp_path: Path) -> None:
    """All hear of a lost device, nobody waits, and a new engine reads what the old one stored."""
    found = DRILLS["device-reset"](tmp_path)

    assert found.passed, found.observed
    assert found.detect_s is not None
    assert 0 <= found.detect_s


def test_kafka_down() -> None:
    """The engine goes on while the broker is away, and what it told meanwhile is stored, once."""
    jars()
    command = [sys.executable, "-m", "kvtrail_cli.main", "drill", "all", "--only", "kafka-down", "--json"]
    done = subprocess.run(command, cwd=PARTS.parents[1], capture_output=True, text=True, check=False, timeout=110)
    (found,) = json.loads(done.stdout)["drills"]

    assert found["passed"], (found, done.stderr)
    assert 0 <= found["act_s"]
