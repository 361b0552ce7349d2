"""`kvtrail drill accuracy --generated`: makes populations one after another, and judges each as a live run is judged."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from kvtrail_engine.drills.profile import drill_settings

from kvtrail_cli.drill.generated.make import Made, make
from kvtrail_cli.drill.generated.plan import Planned, planned
from kvtrail_cli.drill.generated.recorded import Limits, Recorded, recorded_of
from kvtrail_cli.drill.generated.table import NEIGHBOUR_NAME, table_of
from kvtrail_cli.drill.judge import Judged, Truth, judge
from kvtrail_cli.drill.recordings import table_of as recorded_table
from kvtrail_cli.drill.recordings import truth_of
from kvtrail_cli.drill.results import Results
from kvtrail_cli.output import Advance

_PACKAGED: Final = files("kvtrail_cli.drill.generated") / "recorded.json"
_LEAST_REQUESTS: Final = 200


def run_generated(  # noqa: PLR0917 - what to do, where, and whom to tell
    plans: Sequence[Planned],
    recorded: Sequence[Recorded],
    results: Results,
    advance: Advance,
    report: Callable[[Judged], None],
    workers: int = 1,
) -> None:
    """Make and judge every population that is not there, in so many processes. Half a second of a core each."""
    missing = [plan for plan in plans if not results.has(plan.name)]
    advance(0, len(missing))
    for done, judged in enumerate(_judged(missing, recorded, workers), start=1):
        results.add(judged.run)
        report(judged)
        advance(done, len(missing))


def _judged(plans: Sequence[Planned], recorded: Sequence[Recorded], workers: int) -> Iterator[Judged]:
    """Populations in the order of their plans; the processes end with the last of them."""
    sources = [recorded[plan.number % len(recorded)] for plan in plans]
    if min(workers, len(plans)) <= 1:
        yield from map(judged_population, plans, sources)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(judged_population, plans, sources)


def judged_population(plan: Planned, recorded: Recorded) -> Judged:
    """One population, from its making to its judgement."""
    began_s = time.monotonic()
    made = make(plan, recorded)
    table = table_of(made.trace)
    return judge(table, truth_of_made(plan, made), time.monotonic() - began_s)


def truth_of_made(plan: Planned, made: Made) -> Truth:
    """What was injected."""
    return Truth(plan.name, plan.faults, plan.number, made.strength, made.span, NEIGHBOUR_NAME)


def plans_of(count: int, only: tuple[str, ...], first: int = 0) -> list[Planned]:
    """So many populations, by number from the first one on."""
    return [planned(number, only) for number in range(first, first + count)]


def recorded_runs(folder: Path) -> list[Recorded]:
    """The healthy runs that were recorded live into a folder; where there is none, the one that comes with the package."""
    own = [path for path in sorted(folder.glob("none-*")) if truth_of(path) is not None]
    found = [recorded_run(path) for path in own]
    enough = [run for run in found if len(run.requests.gap_ns) >= _LEAST_REQUESTS]
    return enough or [packaged()]


def packaged() -> Recorded:
    """The run that comes with the package: a healthy one of the reference engine, shortened."""
    return Recorded.of_json(_PACKAGED.read_bytes())


def recorded_run(path: Path) -> Recorded:
    """One recording, reduced to what others are made from."""
    settings = drill_settings(0, path)
    limits = Limits(settings.host.workers, settings.nvme.workers, settings.step.budget_tokens, settings.block_bytes)
    return recorded_of(recorded_table(path), path.name, limits)


def shortened(recorded: Recorded, requests: int) -> Recorded:
    """A recording with fewer requests and coarser curves, to be kept as a small file."""
    few = {name: getattr(recorded.requests, name)[:requests] for name in recorded.requests.__struct_fields__}
    curves = {name: _coarse(getattr(recorded, name)) for name in recorded.__struct_fields__ if name.endswith("_ns")}
    lists = {name: values for name, values in curves.items() if isinstance(values, list)}
    return msgspec.structs.replace(recorded, requests=type(recorded.requests)(**few), **lists)


def _coarse(values: list[int] | int) -> list[int] | int:
    """Every fourth point of a curve; the last one stays."""
    return values if isinstance(values, int) else [int(value) for value in np.array(values)[::4]]
