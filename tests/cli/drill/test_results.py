"""The results file: what is there is not run again, whatever happened while it was written."""

from pathlib import Path

import msgspec
import pytest
from kvtrail_cli.drill.results import Results
from kvtrail_cli.errors import InputInvalid

from tests.cli.drill.test_score import run


def test_runs_are_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    """What was added is found by name."""
    path = tmp_path / "deep" / "results.jsonl"
    first = run("a", "A", right=True)
    Results(path).add(first)

    assert Results(path).runs == [first]
    assert Results(path).has(first.name)
    assert not Results(path).has("another")


def test_the_last_judgement_of_a_run_counts(tmp_path: Path) -> None:
    """Judged again, a run is still one run."""
    results = Results(tmp_path / "results.jsonl")
    before = run("a", "A")
    after = msgspec.structs.replace(before, is_right=True)
    results.add(before)
    results.add(after)

    assert Results(tmp_path / "results.jsonl").runs == [after]


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    """A kill in the middle of a line costs that run; the next one is appended to whole lines."""
    path = tmp_path / "results.jsonl"
    Results(path).add(run("a", "A"))
    path.write_bytes(path.read_bytes() + b'{"name": "b')
    results = Results(path)
    results.add(run("c", "C"))

    assert [one.faults for one in Results(path).runs] == [("a",), ("c",)]


def test_another_file_is_refused(tmp_path: Path) -> None:
    """A file that holds something else is named, and not overwritten."""
    path = tmp_path / "results.jsonl"
    path.write_text("hello\n", encoding="utf-8")

    with pytest.raises(InputInvalid, match=r"results\.jsonl"):
        Results(path)
    assert path.read_text(encoding="utf-8") == "hello\n"
