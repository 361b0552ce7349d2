"""The results file: what is there is not run again, whatever happened while it was written."""

from pathlib import Path

import msgspec
import pytest
from kvtrail_cli.drill.judged_by import judged_by
from kvtrail_cli.drill.results import Results
from kvtrail_cli.errors import InputInvalid

from tests.cli.drill.test_score import run


def test_runs_are_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    """What was added is found by name."""
    path = tmp_path / "deep" / "results.jsonl"
    first = run("a", "A", right=True)
    Results(path, "v1").add(first)

    assert Results(path, "v1").of([first.name, "another"]) == [msgspec.structs.replace(first, judged_by="v1")]
    assert Results(path, "v1").has(first.name)
    assert not Results(path, "v1").has("another")


def test_the_last_judgement_of_a_run_counts(tmp_path: Path) -> None:
    """Judged again, a run is still one run."""
    results = Results(tmp_path / "results.jsonl", "v1")
    before = run("a", "A")
    after = msgspec.structs.replace(before, is_right=True)
    results.add(before)
    results.add(after)

    assert [True] == [one.is_right for one in Results(tmp_path / "results.jsonl", "v1").of([after.name])]


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    """A kill in the middle of a line costs that run; the next one is appended to whole lines."""
    path = tmp_path / "results.jsonl"
    Results(path, "v1").add(run("a", "A"))
    path.write_bytes(path.read_bytes() + b'{"name": "b')
    results = Results(path, "v1")
    results.add(run("c", "C"))

    kept = Results(path, "v1").of([run("a", "A").name, run("c", "C").name])
    assert [("a",), ("c",)] == [one.faults for one in kept]


def test_what_other_code_judged_is_not_there(tmp_path: Path) -> None:
    """Figures of two versions are never added up; the run is judged again, and the newest judgement is kept."""
    path, name = tmp_path / "results.jsonl", run("a", "A").name
    Results(path, "v1").add(run("a", "A"))
    newer = Results(path, "v2")

    assert not newer.has(name)
    newer.add(run("a", "A", right=True))
    assert [True] == [one.is_right for one in Results(path, "v2").of([name])]
    assert not Results(path, "v1").has(name)


def test_what_a_run_is_made_from_is_part_of_its_judgement() -> None:
    """The same code and the same recordings say the same; another recording says something else."""
    assert judged_by([b"a", b"b"]) == judged_by([b"a", b"b"])
    assert 3 == len({judged_by(), judged_by([b"a"]), judged_by([b"b"])})


def test_another_file_is_refused(tmp_path: Path) -> None:
    """A file that holds something else is named, and not overwritten."""
    path = tmp_path / "results.jsonl"
    path.write_text("hello\n", encoding="utf-8")

    with pytest.raises(InputInvalid, match=r"results\.jsonl"):
        Results(path, "v1")
    assert path.read_text(encoding="utf-8") == "hello\n"
