"""The drills that take whole processes away: the device of an engine, and the broker between engine and collector."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from kvtrail_cli.drill.safety import DRILLS

from tests.broker import PARTS, jars


def test_device_reset(tmp_path: Path) -> None:
    """All hear of a lost device, nobody waits, and a new engine reads what the old one stored."""
    found = DRILLS["device-reset"](tmp_path)

    assert found.passed, found.observed
    assert found.detect_s is not None
    assert 0 <= found.detect_s


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # the client drops what it tried to connect with unclosed
def test_kafka_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine goes on while the broker is away, and what it told meanwhile is stored, once."""
    jars()
    monkeypatch.chdir(PARTS.parents[1])
    found = DRILLS["kafka-down"](tmp_path)
    gc.collect()  # what the client dropped is nobody else's

    assert found.passed, found.observed
    assert found.act_s is not None
    assert 0 <= found.act_s
