"""From judged runs to precision, recall, false alarms and the confusion matrix. Pure."""

from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from statistics import median
from typing import Final

from scipy.stats import binomtest

from kvtrail_cli.drill.shapes import Accuracy, Cell, FaultRate, Rate, Run

MIX: Final = "mix-shift"
NONE: Final = "none"
LEAST_LIFT: Final = 0.10
_WRONG_NAMED: Final = 40
MOST_BY_OTHERS: Final = 0.1


class Seeds(StrEnum):
    """Which runs are counted: thresholds are tuned on even seeds and reported on odd ones."""

    ALL = "all"
    EVEN = "even"
    ODD = "odd"

    def has(self, seed: int) -> bool:
        """Whether a run with this seed counts."""
        return self is Seeds.ALL or (seed % 2 == 0) == (self is Seeds.EVEN)


def accuracy_of(mode: str, runs: Sequence[Run], seeds: Seeds = Seeds.ALL, least_lift: float = LEAST_LIFT) -> Accuracy:
    """Sum up the runs whose seeds count."""
    chosen = [run for run in runs if seeds.has(run.seed)]
    healthy = [run for run in chosen if run.faults == (NONE,)]
    broken = [run for run in chosen if run.faults != (NONE,) and (run.lift or 0.0) >= least_lift]
    said = [run for run in broken if run.found is not None]
    mixed = [run for run in said if MIX in run.faults]
    pairs = [run for run in broken if len(_faults(run)) > 1]
    unattributed = [run.unattributed_p99 for run in chosen if run.unattributed_p99 is not None]
    return Accuracy(
        mode=mode,
        seeds=seeds.value,
        runs=len(chosen),
        least_lift=least_lift,
        top1_precision=rate(said, _is_right),
        top1_recall=rate(broken, _is_right),
        mix_precision=rate(mixed, _is_right),
        both_named=rate(pairs, lambda run: len(run.codes) > 1),
        false_alarm_rate=rate(healthy, lambda run: run.found is not None),
        abstained=len(broken) - len(said),
        unattributed_p99=sum(unattributed) / len(unattributed) if unattributed else None,
        confusion=_confusion([*broken, *healthy]),
        faults=_by_fault([*broken, *healthy]),
        wrong=tuple(run.name for run in said if not run.is_right)[:_WRONG_NAMED],
        disturbed=tuple(run.name for run in chosen if (run.others_busy or 0.0) > MOST_BY_OTHERS),
    )


def rate(runs: Sequence[Run], counts: Callable[[Run], bool]) -> Rate:
    """The share of runs that count, with its Wilson interval."""
    count = sum(counts(run) for run in runs)
    if not runs:
        return Rate(None, None, None, 0, 0)
    interval = binomtest(count, len(runs)).proportion_ci(0.95, method="wilson")
    return Rate(count / len(runs), float(interval.low), float(interval.high), count, len(runs))


def _is_right(run: Run) -> bool:
    """Whether the first verdict is right."""
    return run.is_right


def _faults(run: Run) -> tuple[str, ...]:
    """What was broken; a shift of the mix breaks nothing."""
    return tuple(fault for fault in run.faults if fault != MIX)


def injected_of(run: Run) -> str:
    """What was injected, in one text."""
    return " + ".join(run.faults)


def _confusion(runs: Sequence[Run]) -> tuple[Cell, ...]:
    """What was found for what was injected, in the order of faults, the commonest answer first."""
    count = Counter((injected_of(run), run.found, run.tier) for run in runs)
    right = Counter((injected_of(run), run.found, run.tier) for run in runs if run.is_right)
    ranked = sorted(count.items(), key=lambda item: (item[0][0], -item[1], item[0][1] or "", item[0][2] or ""))
    return tuple(Cell(*key, number, right[key]) for key, number in ranked)


def _by_fault(runs: Sequence[Run]) -> tuple[FaultRate, ...]:
    """Each fault, in the order of names."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(injected_of(run), []).append(run)
    return tuple(_fault_rate(injected, own) for injected, own in sorted(groups.items()))


def _fault_rate(injected: str, runs: Sequence[Run]) -> FaultRate:
    """One fault."""
    lifts = [run.lift for run in runs if run.lift is not None]
    right, abstained = sum(run.is_right for run in runs), sum(run.found is None for run in runs)
    return FaultRate(injected, len(runs), right, abstained, median(lifts) if lifts else None)
