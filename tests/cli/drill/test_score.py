"""Precision, recall and false alarms: who is counted where."""

import pytest
from kvtrail_cli.drill.accuracy import GENERATED, LIVE, Standing, standing_of
from kvtrail_cli.drill.score import Seeds, accuracy_of, rate
from kvtrail_cli.drill.shapes import Cell, Run


def run(faults: str, found: str | None, *, right: bool = False, seed: int = 1, lift: float | None = 1.0) -> Run:
    """One judged run."""
    names = tuple(faults.split("+"))
    return Run(
        name=f"{faults}-{seed}-{found}",
        faults=names,
        seed=seed,
        strength=1.0,
        requests=1000,
        lift=None if names == ("none",) else lift,
        found=found,
        is_right=right,
        codes=() if found is None else (found,),
        unattributed_p99=0.01,
    )


def test_an_abstention_costs_recall_alone() -> None:
    """Of four faults two are named right, one wrong, one not: precision 2/3, recall 2/4."""
    runs = [run("a", "A", right=True), run("b", "B", right=True), run("c", "X"), run("d", None)]
    answer = accuracy_of("live", runs)

    assert (2, 3) == (answer.top1_precision.count, answer.top1_precision.of)
    assert (2, 4) == (answer.top1_recall.count, answer.top1_recall.of)
    assert answer.abstained == 1


GOOD_RUNS = [run("a", "A", right=True), run("mix-shift+b", "B", right=True), run("none", None, right=True)]


@pytest.mark.parametrize(
    ("runs", "live", "generated"),
    [
        (GOOD_RUNS, Standing.GOOD, Standing.GOOD),
        (GOOD_RUNS[:2], Standing.GOOD, Standing.UNKNOWN),
        ([], Standing.UNKNOWN, Standing.UNKNOWN),
        ([GOOD_RUNS[2]], Standing.UNKNOWN, Standing.UNKNOWN),
        ([*GOOD_RUNS, run("c", "X")], Standing.SHORT, Standing.SHORT),
        ([*GOOD_RUNS, run("none", "A")], Standing.GOOD, Standing.SHORT),
        ([run("c", "X")], Standing.SHORT, Standing.SHORT),
    ],
    ids=["all", "no healthy run", "nothing", "only healthy", "wrong", "false alarm", "wrong alone"],
)
def test_figures_of_nothing_are_not_good(runs: list[Run], live: Standing, generated: Standing) -> None:
    """What is short is short; what nothing was measured of is unknown, and never as it should be."""
    assert live is standing_of(accuracy_of("live", runs), LIVE)
    assert generated is standing_of(accuracy_of("generated", runs), GENERATED)


def test_a_false_alarm_is_said_of_a_healthy_run() -> None:
    """It costs neither precision nor recall, which are over broken runs."""
    answer = accuracy_of("live", [run("none", "A"), run("none", None, right=True), run("a", "A", right=True)])

    assert (1, 2) == (answer.false_alarm_rate.count, answer.false_alarm_rate.of)
    assert answer.top1_precision.value == 1.0


def test_what_hardly_grew_is_not_counted() -> None:
    """A fault that made the tail less than a tenth longer is neither found nor missed."""
    answer = accuracy_of("generated", [run("a", None, lift=0.05), run("b", "B", right=True, lift=0.2)])

    assert (1, 1) == (answer.top1_recall.count, answer.top1_recall.of)


def test_seeds_are_kept_apart() -> None:
    """What is reported is what nothing was tuned on."""
    runs = [run("a", "A", right=True, seed=1), run("a", "X", seed=2)]

    assert accuracy_of("live", runs, Seeds.ODD).top1_precision.value == 1.0
    assert accuracy_of("live", runs, Seeds.EVEN).top1_precision.value == 0.0
    assert accuracy_of("live", runs, Seeds.ALL).runs == 2


def test_the_matrix_has_every_answer() -> None:
    """Each fault with each of its answers, silence among them, the commonest first."""
    runs = [run("a", "A", right=True), run("a", "A", right=True, seed=2), run("a", None), run("none", None, right=True)]

    assert accuracy_of("live", runs).confusion == (
        Cell("a", "A", None, 2, 2),
        Cell("a", None, None, 1, 0),
        Cell("none", None, None, 1, 1),
    )


def test_a_rate_has_the_interval_of_wilson() -> None:
    """18 of 20 is 0.9, and surely between 0.70 and 0.97; of nothing it is nothing."""
    found = rate([run("a", "A", right=number < 18, seed=number) for number in range(20)], lambda one: one.is_right)

    assert (found.value, found.count, found.of) == (0.9, 18, 20)
    assert (round(found.low or 0, 3), round(found.high or 0, 3)) == (0.699, 0.972)
    assert rate([], lambda one: one.is_right).value is None


def test_a_shift_of_the_mix_is_counted_apart_too() -> None:
    """Precision under a shift is over runs with one, alone or beside a fault."""
    answer = accuracy_of("generated", [run("mix-shift", "X"), run("a+mix-shift", "A", right=True), run("b", "B")])

    assert (1, 2) == (answer.mix_precision.count, answer.mix_precision.of)
