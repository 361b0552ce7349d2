"""One recording, diagnosed without its drill, and held against what was injected.

The table goes the way of every attribution: facts, ledgers, population, windows, verdicts. What was injected is known here
alone, and is looked at only after the diagnosis has been made.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from kvtrail_collector.attribution import attribute_recording
from kvtrail_collector.attribution_shapes import Attribution, Verdict
from kvtrail_collector.attribution_tail import choose_quantile
from kvtrail_collector.facts_build import recording_of_table
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.population import Population, population_of
from kvtrail_collector.window_scan import FloatArray
from kvtrail_collector.window_search import warm_up_end_ns

from kvtrail_cli.drill.expected import Expected, expected_of
from kvtrail_cli.drill.score import MIX, NONE
from kvtrail_cli.drill.shapes import Run

_P99: Final = 0.99
Moments = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Truth:
    """What was injected: faults by name, from when to when on the clock of the events (None: no fault), and whose work.

    `neighbour` is the tenant that the drill brought, as the events name it.
    """

    name: str
    faults: tuple[str, ...]
    seed: int
    strength: float
    moments: Moments | None
    neighbour: str | None = None


class Judged(NamedTuple):
    """A run for the books, and the answer that it was judged by."""

    run: Run
    answer: Attribution


def judge(table: pa.Table, truth: Truth, seconds: float = 0.0) -> Judged:
    """Diagnose a table of events, and compare. Seconds for 10,000 requests; pure."""
    recording = recording_of_table(table)
    population = population_of(recording)
    answer = attribute_recording(recording, seed=truth.seed, population=population)
    first = answer.verdicts[0] if answer.verdicts else None
    run = Run(
        name=truth.name,
        faults=truth.faults,
        seed=truth.seed,
        strength=truth.strength,
        requests=len(population),
        lift=lift_of(population, truth.moments),
        found=first.code if first else None,
        tier=first.tier if first else None,
        tenant=first.tenant if first else None,
        is_right=is_right(truth, first),
        codes=tuple(verdict.code for verdict in answer.verdicts),
        why_not=answer.why_not,
        unattributed_p99=unattributed_share(population),
        seconds=seconds,
    )
    return Judged(run, answer)


def is_right(truth: Truth, first: Verdict | None) -> bool:
    """Whether the first verdict is what counts as right; silence is right where nothing was broken."""
    if first is None:
        return truth.faults == (NONE,)
    return any(expected.accepts(first, truth.neighbour) for expected in wanted(truth.faults))


def wanted(faults: tuple[str, ...]) -> list[Expected]:
    """The answers that count: with a fault beside a shift of the mix, the fault."""
    broken = [fault for fault in faults if fault != MIX] or list(faults)
    return [expected_of(fault) for fault in broken]


def lift_of(population: Population, moments: Moments | None) -> float | None:
    """By how much the tail within the fault is longer than before it, as a share; None where there are too few requests."""
    if moments is None or not len(population):
        return None
    start_ns, end_ns = moments
    inside = population.arrived_in(start_ns, end_ns).latency_ns
    before = population.arrived_in(warm_up_end_ns(population), start_ns).latency_ns
    quantile = choose_quantile(len(inside), len(before))
    if quantile is None:
        return None
    base = _tail_mean(before, float(quantile))
    return _tail_mean(inside, float(quantile)) / base - 1 if base else None


def _tail_mean(latency_ns: np.ndarray, p: float) -> float:
    """The mean beyond a quantile."""
    slowest: FloatArray = np.sort(latency_ns)[int(len(latency_ns) * p) :].astype(np.float64)
    return float(slowest.mean()) if len(slowest) else 0.0


def unattributed_share(population: Population) -> float | None:
    """The share of the slowest hundredth's time that nobody owns."""
    columns = [place for place, cause in enumerate(population.causes) if cause.component is Component.UNATTRIBUTED]
    if not len(population):
        return None
    tail = population.latency_ns >= np.quantile(population.latency_ns, _P99)
    total = float(population.latency_ns[tail].sum())
    return float(population.amounts_ns[tail][:, columns].sum()) / total if total else 0.0
