"""`kvtrail drill accuracy` as a person runs it."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from kvtrail_cli.drill.accuracy import AccuracyChoice, Standing, live_plan, run_accuracy

from tests.packages import ROOT

SCHEMA = json.loads((ROOT / "docs/reference/outputs.schema.json").read_text(encoding="utf-8"))


def accuracy(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the verb in a process of its own."""
    command = [sys.executable, "-m", "kvtrail_cli.main", "drill", "accuracy", "--dir", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)


def test_the_answer_has_its_published_shape(tmp_path: Path) -> None:
    """One JSON object on standard output, about all that was made; what was made is kept."""
    done = accuracy(tmp_path, "--generated", "--populations", "1", "--faults", "noticed-late", "--json")
    answer = json.loads(done.stdout)

    jsonschema.validate(answer, {**SCHEMA, "$ref": "#/$defs/Accuracy"})
    assert (1, "generated") == (answer["runs"], answer["mode"])
    assert len((tmp_path / "generated" / "results.jsonl").read_text(encoding="utf-8").splitlines()) == 1


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    """Asked again for more, only what is missing is made, by two processes as by one; what was asked for is summed up."""
    told: list[str] = []
    for populations in (1, 3, 3):
        choice = AccuracyChoice(
            live=False,
            faults=("nvme-slow",),
            strengths=(),
            seeds=1,
            count="all",
            folder=tmp_path,
            populations=populations,
            first=40,
            workers=2,
        )
        answer, _ = run_accuracy(choice, lambda _done, total: told.append(str(total)), told.append)
    path = tmp_path / "generated" / "results.jsonl"
    less, standing = run_accuracy(replace(choice, populations=1), lambda _done, _total: None, told.append)

    assert answer.runs == 3
    assert (1, Standing.UNKNOWN) == (less.runs, standing)  # what was not asked for does not count
    assert [40, 41, 42] == [json.loads(line)["seed"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_second_set_of_live_seeds_begins_after_the_first(tmp_path: Path) -> None:
    """Asked for two seeds after two, seeds 3 and 4 are run, and none of those that detectors were tuned on."""
    choice = AccuracyChoice(
        live=True, faults=("nvme-slow",), strengths=("mild",), seeds=2, count="all", folder=tmp_path, first=2
    )

    assert (3, 4) == live_plan(choice).seeds


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--faults", "nothing"), "there is no fault nothing"), (("--count", "some"), "one of all, even, odd")],
)
def test_what_cannot_be_done_is_said_in_one_line(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """A fault or a choice that there is not ends the verb with 2, before anything runs."""
    done = accuracy(tmp_path, *words)

    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
