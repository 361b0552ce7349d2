"""Promises of `kvtrail gate` on two folders that recorders wrote: its exits, its figures, and what it refuses."""

import json
from pathlib import Path

import pytest
from kvtrail_cli.errors import CommandError, Exit, command_errors
from kvtrail_cli.main import APP
from kvtrail_collector.testing import RunningCollector

from tests.collector.frames import events_batch
from tests.collector.gate_runs import Fate, recorded, run


@pytest.mark.parametrize(
    ("fates", "end", "result"),
    [
        ([Fate.FINISHED] * 600, Exit.GOOD, "pass"),
        ([Fate.FINISHED, Fate.HANGING] * 300, Exit.BAD, "fail"),
        ([Fate.FINISHED] * 100, Exit.UNDECIDED, "undecided"),
    ],
)
def test_exits(fates: list[Fate], end: Exit, result: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0 passed, 1 failed, 3 undecided; the answer says the same."""
    old, new = recorded(tmp_path / "old", run([Fate.FINISHED] * 600)), recorded(tmp_path / "new", run(fates))
    status = APP(["gate", str(old), str(new), "--json"], standalone_mode=False)
    answer = json.loads(capsys.readouterr().out)

    assert end.value == status
    assert result == answer["result"]


def test_a_threshold_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What fails by default passes where it may; the view for people names each condition."""
    old = recorded(tmp_path / "old", run([Fate.FINISHED] * 600))
    new = recorded(tmp_path / "new", run([Fate.FINISHED] * 600, slower=1.5))
    own = [f"--threshold={name}_p{rank}_ratio=2" for name in ("ttft", "tpot") for rank in (50, 95)]

    assert Exit.BAD.value == APP(["gate", str(old), str(new)], standalone_mode=False)
    assert "unanswered_share" in capsys.readouterr().out
    assert Exit.GOOD.value == APP(["gate", str(old), str(new), *own], standalone_mode=False)


def test_a_folder_and_a_run_are_not_compared(tmp_path: Path) -> None:
    """One folder and one name is a mistake, and said to be one."""
    with pytest.raises(CommandError, match="the other run is not"), command_errors():
        APP(["gate", str(tmp_path), "chat-1"], standalone_mode=False)


def test_what_is_no_recording_is_told_apart(tmp_path: Path) -> None:
    """A file, a folder that is not there, an empty one, one around a recording, and one with a segment that is none."""
    sound = recorded(tmp_path / "sound", run([Fate.FINISHED] * 3))
    empty, around, damaged = tmp_path / "empty", tmp_path / "around", tmp_path / "damaged"
    for folder in (empty, around, damaged):
        folder.mkdir()
    recorded(around / "events", run([Fate.FINISHED] * 3))
    (damaged / "run-000001.segment").write_bytes(b"\x08\x00\x00\x00no frame")
    wrong = {
        next(sound.iterdir()): "is a file: give the folder",
        tmp_path / "nowhere": "there is no such folder",
        empty: "holds no recording: give the folder",
        around: "events does: give that",
        damaged: "holds a segment that cannot be read",
    }
    for path, advice in wrong.items():
        with pytest.raises(CommandError, match=advice), command_errors():
            APP(["gate", str(sound), str(path)], standalone_mode=False)


def test_two_runs_of_a_collector(collector: RunningCollector, capsys: pytest.CaptureFixture[str]) -> None:
    """By its address: runs by name and epoch, one of them hexadecimal; and what is not stored is refused with what is."""
    for epoch, slower in ((0xAB, 1.0), (0xCD, 1.5)):
        events = run([Fate.FINISHED] * 400, slower=slower)
        collector.store.submit(events_batch(events, engine="chat", epoch=epoch)).result()
    asked = ["--url", collector.url, "--json"]

    assert Exit.BAD.value == APP(["gate", f"chat@{0xAB}", "chat@cd", *asked], standalone_mode=False)
    failed = {each["name"] for each in json.loads(capsys.readouterr().out)["conditions"] if each["result"] == "fail"}
    assert {"ttft_p50_ratio", "tpot_p50_ratio"} <= failed
    assert Exit.GOOD.value == APP(["gate", "chat@ab", "chat@00000000000000ab", *asked], standalone_mode=False)
    with pytest.raises(CommandError, match="name one that is: chat@00000000000000ab"), command_errors():
        APP(["gate", "chat", "chta", *asked], standalone_mode=False)
