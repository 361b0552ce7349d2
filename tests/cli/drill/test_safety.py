"""Each drill passes on a sound engine, and fails where what it is about does not hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kvtrail_cli.drill.safety import DRILLS, run_drills
from kvtrail_cli.errors import Exit
from kvtrail_cli.main import APP
from kvtrail_engine.invalidation import Invalidation
from kvtrail_engine.lookup import Lookup
from kvtrail_engine.redis_process import find_redis_server
from kvtrail_engine.tiers.remote_store import HEAD_BYTES, RemoteStore
from kvtrail_engine.tiers.segments import Get
from kvtrail_schema.arrow_schema import events_of
from kvtrail_schema.identity import EventId

from tests.real import require_real

LONGER = {"kafka-down", "device-reset"}
"""Those that start more than an engine; they run in `tests/e2e`."""


@pytest.mark.parametrize("name", [name for name in DRILLS if name not in LONGER])
def test_a_sound_engine_passes(name: str, private_dir: Path) -> None:
    """What must hold holds, and events and the recorder's own file show it, with times that are not negative."""
    if name in {"connector-timeout", "remote-wrong-answer"}:
        require_real("redis-server", found=find_redis_server() is not None, how="install Debian's redis-server")
    found = DRILLS[name](private_dir)

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


def test_an_engine_that_believes_its_remote_fails(private_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that are taken as they come are found out by what they make of the answers."""
    require_real("redis-server", found=find_redis_server() is not None, how="install Debian's redis-server")

    def believe(_store: RemoteStore, get: Get, value: bytes | None) -> None:
        get.into[:] = (value or b"")[HEAD_BYTES:][: get.into.nbytes].ljust(get.into.nbytes, b"\0")

    monkeypatch.setattr(RemoteStore, "_believe", believe)
    found = DRILLS["remote-wrong-answer"](private_dir)

    assert not found.passed
    assert "each wrong block is found out" in found.observed
    assert "none is used" in found.observed


def test_a_recorder_that_loses_events_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's own word is not enough: its recorder's file has to have each event."""
    monkeypatch.setattr("kvtrail_cli.drill.safety_file.events_of", lambda rows: events_of(rows)[:-1])
    found = DRILLS["process-restart"](tmp_path)

    assert not found.passed
    assert "the recorder's file has each event once" in found.observed


def test_a_program_that_is_missing_is_no_failure_of_the_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said which one, that the drill was not run, and that nothing is decided."""
    monkeypatch.setattr("kvtrail_cli.drill.safety_remote.find_redis_server", lambda: None)
    status = APP(["drill", "all", "--only", "connector-timeout", "--json"], standalone_mode=False)
    (found,) = json.loads(capsys.readouterr().out)["drills"]

    assert Exit.UNDECIDED.value == status
    assert (False, False) == (found["passed"], found["was_run"])
    assert "install it" in found["observed"]
