"""Runs what is missing, judges it, and sums up; holds the sums against what is wanted of them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtrail_engine.drills.registry import DRILL_NAMES, Strength

from kvtrail_cli.drill.generated.run import plans_of, recorded_runs, run_generated
from kvtrail_cli.drill.judge import Judged
from kvtrail_cli.drill.live import LivePlan, faults_of, judge_recording, run_live
from kvtrail_cli.drill.results import Results
from kvtrail_cli.drill.score import Seeds, accuracy_of
from kvtrail_cli.drill.shapes import Accuracy, Rate
from kvtrail_cli.output import Advance


@dataclass(frozen=True, slots=True)
class Wanted:
    """The least precision and recall, and the most false alarms and unattributed time, that are good enough."""

    precision: float
    recall: float
    mix_precision: float
    false_alarms: float
    unattributed: float


LIVE: Final = Wanted(0.9, 0.8, 0.0, 1.0, 0.02)
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


def run_accuracy(choice: AccuracyChoice, advance: Advance, note: Callable[[str], None]) -> tuple[Accuracy, bool]:
    """The whole of it, and whether it is good enough. Blocks for as long as the missing runs take.

    Raises:
        InputInvalid: a fault that there is not, or a file that holds something else.
        EngineError: an engine cannot start, or failed.
    """
    results = _live(choice, advance, note) if choice.live else _generated(choice, advance, note)
    answer = accuracy_of("live" if choice.live else "generated", results.runs, Seeds(choice.count))
    return answer, is_good(answer, LIVE if choice.live else GENERATED)


def is_good(answer: Accuracy, wanted: Wanted) -> bool:
    """Whether every figure that is known is good enough."""
    return (
        _at_least(answer.top1_precision, wanted.precision)
        and _at_least(answer.top1_recall, wanted.recall)
        and _at_least(answer.mix_precision, wanted.mix_precision)
        and (answer.false_alarm_rate.value or 0.0) <= wanted.false_alarms
        and (answer.unattributed_p99 or 0.0) <= wanted.unattributed
    )


def _at_least(rate: Rate, least: float) -> bool:
    """Whether a rate is known to be so high; one of nothing says nothing."""
    return rate.value is None or rate.value >= least


def _live(choice: AccuracyChoice, advance: Advance, note: Callable[[str], None]) -> Results:
    """The live runs."""
    folder = choice.folder / "live"
    results = Results(folder / "results.jsonl")
    if choice.again:
        for run in results.runs:
            results.add(judge_recording(folder / run.name).run)
    run_live(live_plan(choice), folder, results, advance, lambda judged: note(line_of(judged)), choice.at_most)
    return results


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


def _generated(choice: AccuracyChoice, advance: Advance, note: Callable[[str], None]) -> Results:
    """The populations made from recorded runs; only those that go wrong are told one by one."""
    results = Results(choice.folder / "generated" / "results.jsonl")
    plans = plans_of(choice.populations, faults_of(choice.faults, DRILL_NAMES) if choice.faults else (), choice.first)
    missing = [plan for plan in plans if not results.has(plan.name)][: choice.at_most]

    def report(judged: Judged) -> None:
        if not judged.run.is_right and judged.run.found is not None:
            note(line_of(judged))

    run_generated(missing, recorded_runs(choice.folder / "live"), results, advance, report, choice.workers)
    return results


def line_of(judged: Judged) -> str:
    """One run in a line."""
    run = judged.run
    found = "nothing" if run.found is None else " ".join(word for word in (run.found, run.tier, run.tenant) if word)
    known = [word for word in (None if run.lift is None else f"tail {run.lift:+.0%}", run.why_not) if word]
    return f"{'right' if run.is_right else 'WRONG':5} {run.name}: {found}  ({'; '.join(known)})"
