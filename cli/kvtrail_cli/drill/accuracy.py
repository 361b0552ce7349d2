"""Runs what is missing, judges it, and sums up; holds the sums against what is wanted of them."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

import msgspec
from kvtrail_engine.drills.registry import DRILL_NAMES, Strength

from kvtrail_cli.drill.generated.run import plans_of, recorded_runs, run_generated
from kvtrail_cli.drill.judge import Judged
from kvtrail_cli.drill.judged_by import judged_by
from kvtrail_cli.drill.live import LivePlan, faults_of, judge_recording, name_of, run_live
from kvtrail_cli.drill.results import Results
from kvtrail_cli.drill.score import Seeds, accuracy_of
from kvtrail_cli.drill.shapes import Accuracy, Run
from kvtrail_cli.output import Advance


@dataclass(frozen=True, slots=True)
class Wanted:
    """The least precision and recall, the most false alarms and unattributed time that are good enough; None: not asked."""

    precision: float
    recall: float
    mix_precision: float | None
    false_alarms: float | None
    unattributed: float


LIVE: Final = Wanted(0.9, 0.8, None, None, 0.02)
POPULATIONS: Final = 2000
GENERATED: Final = Wanted(0.95, 0.85, 0.85, 0.01, 0.02)


@dataclass(frozen=True, slots=True)
class AccuracyChoice:
    """What to run, and which runs to count."""

    live: bool
    faults: tuple[str, ...]
    strengths: tuple[str, ...]
    seeds: int
    count: str
    folder: Path
    populations: int = POPULATIONS
    first: int = 0
    workers: int = 1
    at_most: int | None = None
    again: bool = False


class Standing(Enum):
    """How figures stand to what is wanted of them."""

    GOOD = "good"
    SHORT = "short"
    UNKNOWN = "unknown"


def run_accuracy(choice: AccuracyChoice, advance: Advance, note: Callable[[str], None]) -> tuple[Accuracy, Standing]:
    """The whole of it, and whether it is good enough. Blocks for as long as the missing runs take. Counts what was chosen.

    Raises:
        InputInvalid: a fault that there is not, or a file that holds something else.
        EngineError: an engine cannot start, or failed.
    """
    runs = _live(choice, advance, note) if choice.live else _generated(choice, advance, note)
    answer = accuracy_of("live" if choice.live else "generated", runs, Seeds(choice.count))
    return answer, standing_of(answer, LIVE if choice.live else GENERATED)


def standing_of(answer: Accuracy, wanted: Wanted) -> Standing:
    """Short where any figure is, unknown where one that is wanted is of nothing."""
    pairs = [
        (answer.top1_precision.value, wanted.precision),
        (answer.top1_recall.value, wanted.recall),
        (_least(answer.unattributed_p99), -wanted.unattributed),
    ]
    if wanted.mix_precision is not None:
        pairs.append((answer.mix_precision.value, wanted.mix_precision))
    if wanted.false_alarms is not None:
        pairs.append((_least(answer.false_alarm_rate.value), -wanted.false_alarms))
    if any(value is not None and value < least for value, least in pairs):
        return Standing.SHORT
    return Standing.UNKNOWN if any(value is None for value, _ in pairs) else Standing.GOOD


def _least(value: float | None) -> float | None:
    """A figure of which less is better, turned round."""
    return None if value is None else -value


def _live(choice: AccuracyChoice, advance: Advance, note: Callable[[str], None]) -> list[Run]:
    """The live runs."""
    folder, plan = choice.folder / "live", live_plan(choice)
    results, names = Results(folder / "results.jsonl", judged_by()), [name_of(scenario) for scenario in plan.scenarios()]
    if choice.again:
        for run in results.of(names):
            results.add(judge_recording(folder / run.name).run)
    run_live(plan, folder, results, advance, lambda judged: note(line_of(judged)), choice.at_most)
    return results.of(names)


def live_plan(choice: AccuracyChoice) -> LivePlan:
    """The live runs that were chosen: seeds begin after the first, so that a second set needs no run of the first one.

    Raises:
        InputInvalid: a fault that there is not.
    """
    return LivePlan(
        faults_of(choice.faults, DRILL_NAMES),
        tuple(Strength[name.upper()] for name in choice.strengths),
        tuple(range(choice.first + 1, choice.first + choice.seeds + 1)),
    )


def _generated(choice: AccuracyChoice, advance: Advance, note: Callable[[str], None]) -> list[Run]:
    """The populations made from recorded runs; only those that go wrong are told one by one."""
    recorded = recorded_runs(choice.folder / "live")
    results = Results(choice.folder / "generated" / "results.jsonl", judged_by(map(msgspec.json.encode, recorded)))
    plans = plans_of(choice.populations, faults_of(choice.faults, DRILL_NAMES) if choice.faults else (), choice.first)
    missing = [plan for plan in plans if not results.has(plan.name)][: choice.at_most]

    def report(judged: Judged) -> None:
        if not judged.run.is_right and judged.run.found is not None:
            note(line_of(judged))

    run_generated(missing, recorded, results, advance, report, choice.workers)
    return results.of(plan.name for plan in plans)


def line_of(judged: Judged) -> str:
    """One run in a line."""
    run = judged.run
    found = "nothing" if run.found is None else " ".join(word for word in (run.found, run.tier, run.tenant) if word)
    known = [word for word in (None if run.lift is None else f"tail {run.lift:+.0%}", run.why_not) if word]
    return f"{'right' if run.is_right else 'WRONG':5} {run.name}: {found}  ({'; '.join(known)})"
