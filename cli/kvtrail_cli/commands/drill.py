"""`kvtrail drill`: break the engine on purpose. `accuracy`: how often the first verdict is right; `all`: does it stay safe?"""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvtrail_cli.errors import Exit, InputInvalid
from kvtrail_cli.options import Json
from kvtrail_cli.output import OUT, note, print_json, progress

if TYPE_CHECKING:
    from kvtrail_cli.drill.safety_shapes import SafetyDrill

APP = typer.Typer(help="Break the engine on purpose, and see what is said of it.", no_args_is_help=True)


@APP.callback()
def group() -> None:
    """Break the engine on purpose, and see what is said of it."""


class SeedChoice(StrEnum):
    """Which seeds are counted."""

    ALL = "all"
    EVEN = "even"
    ODD = "odd"


class StrengthChoice(StrEnum):
    """How hard a drill strikes."""

    MILD = "mild"
    MEDIUM = "medium"
    HARD = "hard"


@APP.command(name="accuracy")
def accuracy(  # noqa: PLR0917 - one parameter a flag
    seeds: Annotated[int, typer.Option(min=1, help="Live: so many seeds for each fault and strength.")] = 2,
    faults: Annotated[str, typer.Option(help="Only these faults, with commas between; empty: all.")] = "",
    strengths: Annotated[
        list[StrengthChoice] | None, typer.Option("--strength", help="Live: only this strength; may be given again.")
    ] = None,
    count: Annotated[
        str, typer.Option(help="Runs that count: all, even (to tune on) or odd (to report).")
    ] = SeedChoice.ALL.value,
    populations: Annotated[int, typer.Option(min=1, help="Generated: so many populations.")] = 2000,
    first: Annotated[
        int, typer.Option(min=0, help="Live: seeds begin after this one. Generated: the number of the first population.")
    ] = 0,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Generated: so many processes at once.")] = 2,
    folder: Annotated[Path, typer.Option("--dir", help="Where recordings and results are kept.")] = Path("kvtrail-accuracy"),
    most: Annotated[int | None, typer.Option("--at-most", min=1, help="Make at most so many new runs, then sum up.")] = None,
    *,
    live: Annotated[bool, typer.Option("--live/--generated", help="Run the engine, or populations made from its runs.")] = True,
    again: Annotated[bool, typer.Option("--judge-again", help="Live: judge the recordings that are there anew.")] = False,
    json: Json = False,
) -> None:
    """Strike the engine with known faults, diagnose it blindly, and count how often the first verdict is right.

    Ends with 0 where the figures are as good as they should be, with 1 where one is not, with 3 where there is nothing to tell
    one by. May be interrupted and started again: a run that is in the results file is not made again, unless other code
    judged it.
    """
    if count not in set(SeedChoice):
        message = f"--count {count}: one of all, even, odd"
        raise InputInvalid(message)
    from kvtrail_cli.drill.accuracy import AccuracyChoice, Standing, run_accuracy  # noqa: PLC0415 - loads torch

    choice = AccuracyChoice(
        live=live,
        faults=tuple(name.strip() for name in faults.split(",") if name.strip()),
        strengths=tuple(strength.value for strength in strengths or StrengthChoice),
        seeds=seeds,
        count=count,
        folder=folder,
        populations=populations,
        first=first,
        workers=workers,
        at_most=most,
        again=again,
    )
    with progress("drill accuracy: runs") as advance:
        answer, standing = run_accuracy(choice, advance, note)
    if json:
        print_json(answer)
    else:
        from kvtrail_cli.drill.view import accuracy_view  # noqa: PLC0415 - only people need it

        OUT.print(accuracy_view(answer))
    ends = {Standing.GOOD: Exit.GOOD, Standing.SHORT: Exit.BAD, Standing.UNKNOWN: Exit.UNDECIDED}
    raise typer.Exit(ends[standing])


@APP.command(name="all")
def every(
    only: Annotated[str, typer.Option(help="Only these drills, with commas between; empty: all.")] = "", *, json: Json = False
) -> None:
    """Break the real engine in each way, and check from its events that nothing unsafe follows; ends with 1 if it does, and
    with 3 where a drill could not be run.
    """
    from kvtrail_cli.drill.safety import DRILLS, run_drills  # noqa: PLC0415 - loads torch

    names = tuple(name.strip() for name in only.split(",") if name.strip()) or tuple(DRILLS)
    unknown = [name for name in names if name not in DRILLS]
    if unknown:
        raise InputInvalid(f"there is no drill {', '.join(unknown)}; there are {', '.join(DRILLS)}")
    with progress("drills") as advance:
        found = run_drills(names, advance)
    if json:
        print_json(found)
    else:
        note(found.floors)
        for one in found.drills:
            times = [
                f"{name} {value:.3f} s" for name, value in (("detect", one.detect_s), ("act", one.act_s)) if value is not None
            ]
            OUT.print(f"{_word(one)}  {one.name}: {one.observed}  ({', '.join([*times, found.device])})")
    if any(one.was_run and not one.passed for one in found.drills):
        raise typer.Exit(Exit.BAD)
    raise typer.Exit(Exit.GOOD if all(one.passed for one in found.drills) else Exit.UNDECIDED)


@APP.command(name="storm")
def storm(
    runs: Annotated[int, typer.Option(min=1, max=1_000, help="So many storms, one after another; a minute each.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first; each later one has the next.")] = 0,
    *,
    json: Json = False,
) -> None:
    """Let wasted prefetches spike under load, and see that the engine is told in time, is well again, and is released.

    Ends with 0 where the storm makes the P99 of the time to first token three times what it was, the action is applied within
    10 s at P95, that P99 is then back within 1.3 of what it was, and each action is released; else with 1.
    """
    from kvtrail_cli.drill.storm import run_storms  # noqa: PLC0415 - loads torch

    with progress("drill storm: runs") as advance:
        found = run_storms(runs, seed, advance)
    if json:
        print_json(found)
    else:
        from kvtrail_cli.drill.storm_view import storms_view  # noqa: PLC0415 - only people need it

        OUT.print(storms_view(found))
    raise typer.Exit(Exit.GOOD if found.passed else Exit.BAD)


@APP.command(name="gate")
def gate(
    runs: Annotated[int, typer.Option(min=1, max=1_000, help="So many equal candidates, and as many that are worse.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first baseline; there are four.")] = 0,
    *,
    json: Json = False,
) -> None:
    """Run the engine as it is and made worse in four ways, and see that the gate passes the ones and fails the others.

    Some 18 seconds a run. Ends with 0 where the gate was right each time, else with 1.
    """
    from kvtrail_cli.drill.gate import GatePlan, run_gates  # noqa: PLC0415 - loads torch

    with progress("drill gate: runs") as advance:
        found = run_gates(GatePlan(runs, seed), advance)
    if json:
        print_json(found)
    else:
        note(found.floors)
        for one in found.runs:
            why = ", ".join(one.failed or one.undecided)
            OUT.print(f"{'right' if one.is_right else 'WRONG'}  {one.change}, seed {one.seed}: {one.result}  {why}".rstrip())
        OUT.print(
            f"equal: {found.equal_passed} of {found.equal} passed; worse: {found.regressions_failed} of {found.regressions} "
            f"failed; {found.seconds:,.0f} s ({found.device})"
        )
    raise typer.Exit(Exit.GOOD if found.passed else Exit.BAD)


def _word(one: "SafetyDrill") -> str:
    """What became of a drill, in a word."""
    return "passed" if one.passed else "FAILED" if one.was_run else "not run"
