"""`kvtrail compare` as a person runs it: five real paths, equal outputs, honest figures, and a picture."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from kvtrail_cli.compare import run
from kvtrail_cli.compare.parameter import parse_sweep, with_parameter
from kvtrail_cli.compare.plan import compare_settings
from kvtrail_cli.errors import InputInvalid, PartMissing
from kvtrail_engine.redis_process import find_redis_server
from kvtrail_engine.settings import EngineSettings, RestorePolicy

from tests.packages import ROOT
from tests.real import require_real

SCHEMA = json.loads((ROOT / "docs/reference/outputs.schema.json").read_text(encoding="utf-8"))
PATHS = ["gpu-only", "host", "nvme", "remote", "recompute"]


def compare(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run the verb in a process of its own."""
    command = [sys.executable, "-m", "kvtrail_cli.main", "compare", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the picture goes."""
    return tmp_path_factory.mktemp("compare") / "paths.svg"


@pytest.fixture(scope="module")
def done(picture: Path) -> "subprocess.CompletedProcess[str]":
    """One small comparison, looked at by several tests."""
    require_real("redis-server", found=find_redis_server() is not None, how="install Debian's redis-server")
    return compare("--requests", "12", "--json", "--picture", str(picture), "--sweep", "prefetch_window=0,64")


@pytest.fixture(scope="module")
def answer(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    """Its answer."""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_all_paths_give_the_same_answers(done: "subprocess.CompletedProcess[str]", answer: dict[str, Any]) -> None:
    """Tokens and logits are equal on all five, nothing failed, nothing was left out, and the verb ends with 0."""
    assert done.returncode == 0, done.stderr
    assert answer["outputs_equal"] is True
    assert PATHS == [path["path"] for path in answer["paths"]]
    assert {0.0} == {path["error_rate"] for path in answer["paths"]}
    assert {12} == {path["requests"] for path in answer["paths"]}
    assert answer["skipped"] == []


def test_answer_keeps_its_published_shape(answer: dict[str, Any]) -> None:
    """What is printed satisfies the JSON Schema that is published."""
    shape = {**SCHEMA["answers"]["compare"], "$defs": SCHEMA["$defs"]}

    jsonschema.Draft202012Validator(shape).validate(answer)


def test_a_path_is_what_it_says(answer: dict[str, Any]) -> None:
    """Only those with tiers to read restore anything; nobody is idle or busy all of the time."""
    restored = {path["path"]: path["restore_bytes"] > 0 for path in answer["paths"]}

    assert {path: path in {"host", "nvme", "remote"} for path in PATHS} == restored
    assert all(0 < path["gpu_idle"] < 1 for path in answer["paths"])


def test_no_path_wins_everywhere(answer: dict[str, Any]) -> None:
    """With these floors it depends on the load which path is best, and the answer says which one is where."""
    won = [set(scenario["winners"]) for scenario in answer["scenarios"]]

    assert all(won)
    assert set.intersection(*won) == set()
    assert len(set.union(*won)) >= 2


def test_figures_say_what_they_are(answer: dict[str, Any]) -> None:
    """Device on every line; a CPU speaks about no GPU; what nobody counts is null, with the reason."""
    if answer["device"] == "cpu-emulated":
        assert "nothing about any GPU" in answer["statement"]
        assert {None} == {path["energy_j"] for path in answer["paths"]}
        assert all(path["energy_j_reason"] for path in answer["paths"])
    assert {answer["device"]} == {path["device"] for path in answer["paths"]}
    assert all(name in answer["floors"] for name in ("host", "nvme", "remote", "step"))


def test_baselines_come_first(answer: dict[str, Any]) -> None:
    """A warm prefix is quicker than a cold one on every path; half a prefix is quicker only where it can be read."""
    lines = {line["path"]: line for line in answer["baselines"]}

    assert all(line["warm_ms"] < line["cold_ms"] for line in lines.values())
    assert lines["host"]["partial_ms"] < lines["recompute"]["partial_ms"]


def test_a_sweep_has_a_line_a_value(answer: dict[str, Any]) -> None:
    """Used and issued prefetches, restores and idleness stand beside each other for each value."""
    points = answer["sweep"]["points"]

    assert ["0", "64"] == [point["value"] for point in points]
    assert all(0 <= point["prefetches_used"] <= point["prefetches_issued"] for point in points)
    assert 0 == points[0]["prefetches_issued"]
    assert all(point["restore_p95_ms"] > 0 for point in points)


def test_the_picture_shows_every_path(done: "subprocess.CompletedProcess[str]", picture: Path) -> None:
    """One file, readable by any browser."""
    text = picture.read_text(encoding="utf-8")

    assert done.returncode == 0
    assert text.startswith("<svg")
    assert all(f">{path}</text>" in text for path in PATHS)


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        ("nvme", "write name=a,b,c"),
        ("colour=1,2", "has no setting colour"),
        ("nvme.colour=1", "has no setting nvme.colour"),
        ("op_blocks=red", "is not what it takes"),
        ("nvme=1", "has no setting nvme"),
    ],
)
def test_wrong_sweeps_are_heard(sweep: str, said: str) -> None:
    """The message says what is wrong with the words."""
    base = compare_settings(0, Path("unused"))

    with pytest.raises(InputInvalid, match=said):
        swept(base, sweep)


def swept(base: EngineSettings, sweep: str) -> list[EngineSettings]:
    """The settings of each point of a sweep."""
    name, values = parse_sweep(sweep)
    return [with_parameter(base, name, value) for value in values]


def test_settings_are_swept_by_name() -> None:
    """Whole numbers, choices and settings inside of settings; nothing else changes."""
    base = compare_settings(0, Path("unused"))
    workers = with_parameter(base, "nvme.workers", "9")

    assert 9 == workers.nvme.workers
    assert base == replace(workers, nvme=base.nvme)
    assert 7 == with_parameter(base, "prefetch_window", "7").prefetch.window
    assert RestorePolicy.RECOMPUTE is with_parameter(base, "restore_policy", "recompute").restore_policy


def test_a_remote_that_is_not_there_is_left_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a server the other paths are compared; where nothing may be missing, that is an error which says what to do."""
    monkeypatch.setattr(run, "find_redis_server", lambda: None)
    monkeypatch.delenv(run.REQUIRE_REAL, raising=False)
    choice = run.CompareChoice(requests=4, seed=0, slo_ttft_ms=40.0)

    with run.remote_of(choice) as remote:
        assert remote is None
    monkeypatch.setenv(run.REQUIRE_REAL, "1")
    with pytest.raises(PartMissing, match="--remote-url"), run.remote_of(choice):
        pass


def test_a_wrong_word_ends_at_once() -> None:
    """One line that says what is wrong, and status 2, before anything is measured."""
    ended = compare("--requests", "4", "--picture", "paths.gif")

    assert ended.returncode == 2
    assert "must end in .svg or .html" in ended.stderr
    assert "Traceback" not in ended.stderr
