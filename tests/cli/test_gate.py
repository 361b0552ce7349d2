"""Promises of `kvtrail gate` on two folders that recorders wrote: its exits, its figures, and what it refuses."""

import json
from pathlib import Path

import pytest
from kvtrail_cli.errors import CommandError, Exit, command_errors
from kvtrail_cli.main import APP

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
