"""Each drill passes on a sound engine, and fails where what it is about does not hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from kvtrail_cli.drill.safety import DRILLS, run_drills
from kvtrail_engine.invalidation import Invalidation
from kvtrail_engine.lookup import Lookup
from kvtrail_schema.identity import EventId


@pytest.mark.parametrize("name", DRILLS)
def test_a_sound_engine_passes(name: str, tmp_path: Path) -> None:
    """What must hold holds, and the events show it, with times that are not negative."""
    found = DRILLS[name](tmp_path)

    assert found.passed, found.observed
    assert found.detect_s is not None
    assert found.act_s is not None
    assert min(found.detect_s, found.act_s) >= 0


def test_an_engine_that_forgets_to_invalidate_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalidation that takes nothing away is found out by the hits that follow it."""

    def nothing(*_: object, **__: object) -> Invalidation:
        return Invalidation(EventId(1), {}, 0)

    monkeypatch.setattr("kvtrail_engine.engine.invalidate", nothing)
    monkeypatch.setattr("kvtrail_engine.identity.journal.Journal.invalidate", lambda _self, _selected: None)
    found = DRILLS["permission-revoked"](tmp_path)

    assert not found.passed
    assert found.observed.startswith("not so: every copy is told as gone")


def test_an_engine_that_reads_nothing_after_a_restart_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are taken in and never read are no restart."""
    monkeypatch.setattr(Lookup, "_fastest", lambda *_: None)
    found = DRILLS["process-restart"](tmp_path)

    assert not found.passed
    assert "they are read" in found.observed


def test_all_say_where_they_ran() -> None:
    """The answer names device and floors: times mean nothing without them."""
    found = run_drills(("process-restart",), lambda _done, _total: None)

    assert (["process-restart"], "cpu-emulated") == ([one.name for one in found.drills], found.device) or found.device == "cuda"
    assert found.floors.startswith("floors:")
