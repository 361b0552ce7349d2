"""Promises of the verdicts on faults that people met: each is recognised, in whatever words, and its control is silent."""

import os
import random
from pathlib import Path

import pytest
from kvtrail_collector.detectors.rules import RULES
from kvtrail_collector.diagnose_file import diagnose_events, events_of_lines
from kvtrail_collector.diagnose_shapes import Verdicts
from kvtrail_schema.jsonl import Line

from tests.cases.stories import FOLDER, CaseFolder, case_folders, numbered, retold, written

CASES = case_folders()
ALIKE = sorted(path for path in FOLDER.glob("*/control.jsonl") if not (path.parent / "case.toml").exists())
IS_LONG = os.environ.get("KVTRAIL_LONG") == "1"
RETOLD = CASES if IS_LONG else CASES[::8]
SPOILED = CASES if IS_LONG else CASES[2::21]
SEEDS = range(8 if IS_LONG else 1)
# What these say is about lines that cannot be written again: unknown kinds, and seqs that stand twice.
AS_WRITTEN = {"kind-of-a-newer-version"}


def named(cases: list[CaseFolder]) -> pytest.MarkDecorator:
    """A test for each of these cases."""
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def diagnosis(lines: list[str]) -> Verdicts:
    """The answer, of which every rule could be computed; also where spoiling left no event."""
    found = diagnose_events(events_of_lines(lines))

    assert [] == [one for one in found.missing if "could not be computed" in one.so_what]
    return found


def codes(found: Verdicts) -> list[str]:
    """The codes of an answer, in order."""
    return [verdict.code for verdict in found.verdicts]


def test_every_code_has_a_case() -> None:
    """Nothing is promised that no log shows."""
    assert {rule.code for rule in RULES} == {case.code for case in CASES}


@named(CASES)
def test_fires(case: CaseFolder) -> None:
    """The log of the fault gives its code first, in its tier, with figures, events and something to do."""
    found = diagnosis(case.fires.read_text().splitlines())
    first = found.verdicts[0]

    assert (case.code, case.tier) == (first.code, first.tier)
    assert first.evidence
    assert first.action
    assert first.events or case.name in AS_WRITTEN
    assert len(codes(found)) == len(set(codes(found)))


@named(CASES)
def test_control_is_silent(case: CaseFolder) -> None:
    """What looks like the fault and is none gives no verdict at all."""
    assert [] == codes(diagnosis(case.control.read_text().splitlines()))


@pytest.mark.parametrize("path", [FOLDER / "calm.jsonl", *ALIKE], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_calm_is_silent(path: Path) -> None:
    """A healthy engine gives no verdict, nor does what was once taken for a fault and is none."""
    assert [] == codes(diagnosis(path.read_text().splitlines()))


@named([case for case in RETOLD if case.name not in AS_WRITTEN])
@pytest.mark.parametrize("seed", SEEDS)
def test_retold(case: CaseFolder, seed: int) -> None:
    """Other ids, another clock, another name, lines in any order, a healthy engine beside it: the same verdict, and silence."""
    rng = random.Random(f"{case.name} {seed}")

    assert case.code == codes(diagnosis(written(retold(numbered(case.fires), rng))))[0]
    assert [] == codes(diagnosis(written(retold(numbered(case.control), rng))))


@named([case for case in SPOILED if case.name not in AS_WRITTEN])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("spoil", ["missing", "doubled", "swapped", "garbled"])
def test_spoiled(case: CaseFolder, spoil: str, seed: int) -> None:
    """A line that is missing, doubled, out of order or garbled never ends the diagnosis, and never makes it surer."""
    rng = random.Random(f"{case.name} {spoil} {seed}")
    lines = numbered(case.fires)
    whole, spoiled = diagnosis(written(lines)), diagnosis(SPOILS[spoil](lines, rng))
    sure = {verdict.code: verdict.confidence for verdict in whole.verdicts}

    assert spoiled.coverage <= whole.coverage
    assert [] == [one for one in spoiled.verdicts if one.confidence > sure.get(one.code, 1.0)]
    assert case.code in codes(spoiled) or spoiled.coverage < whole.coverage


@named([case for case in SPOILED if case.name not in AS_WRITTEN])
def test_spoiled_control_accuses_nobody(case: CaseFolder) -> None:
    """A line lost from a healthy log is called a gap, not a fault."""
    lines = numbered(case.control)
    found = diagnosis(missing(lines, random.Random(case.name)))

    assert set(codes(found)) <= {"GAP", "INGEST_LOSS", "ORPHAN_CHAIN"}


def missing(lines: list[Line], rng: random.Random) -> list[str]:
    """One line less, though not the last one of a stream, whose loss leaves no trace."""
    last = {line.stream: place for place, line in enumerate(lines)}
    place = rng.choice([place for place, line in enumerate(lines) if place != last[line.stream]] or [0])
    return written([*lines[:place], *lines[place + 1 :]])


def doubled(lines: list[Line], rng: random.Random) -> list[str]:
    """One line twice."""
    place = rng.randrange(len(lines))
    return written([*lines[: place + 1], *lines[place:]])


def swapped(lines: list[Line], rng: random.Random) -> list[str]:
    """Two lines in each other's place."""
    text, (one, other) = written(lines), rng.choices(range(len(lines)), k=2)
    text[one], text[other] = text[other], text[one]
    return text


def garbled(lines: list[Line], rng: random.Random) -> list[str]:
    """One line cut in its middle."""
    text, place = written(lines), rng.randrange(len(lines))
    text[place] = text[place][: len(text[place]) // 2]
    return text


SPOILS = {"missing": missing, "doubled": doubled, "swapped": swapped, "garbled": garbled}
