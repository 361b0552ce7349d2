"""Made populations: events that add up to what was simulated, and faults that touch nothing but their mechanism."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from kvtrail_cli.drill.generated.load import NEIGHBOUR
from kvtrail_cli.drill.generated.make import lift_of, make
from kvtrail_cli.drill.generated.mechanism import FAULTS, Mechanism, Scene, world_of
from kvtrail_cli.drill.generated.plan import planned
from kvtrail_cli.drill.generated.recorded import Recorded
from kvtrail_cli.drill.generated.run import packaged, truth_of_made
from kvtrail_cli.drill.generated.table import table_of
from kvtrail_cli.drill.judge import judge, unattributed_share
from kvtrail_cli.drill.score import MIX, NONE
from kvtrail_collector.attribution import attribute_recording
from kvtrail_collector.facts_build import recording_of_table
from kvtrail_collector.population import population_of
from kvtrail_schema.kinds import Kind

from tests.cli.drill.populations import made

MS = 1_000_000
STRONG = {
    "nvme-slow": 10.0,
    "nvme-queue": 500,
    "prefetch-flood": 500,
    "write-back-flood": 1000,
    "host-pressure": 1.0,
    "remote-timeout": 700 * MS,
    "copy-contention": 30.0,
    "slow-lookup": 80 * MS,
    "long-prefill": 6000,
    "tenant-flood": 120,
    "late-prefetch": 2 * MS,
    "thrash": 0.5,
    "noticed-late": 300 * MS,
    "mix-shift": 0.6,
}
FOUND = {
    "nvme-slow": "TIER_SLOW",
    "nvme-queue": "TIER_QUEUE",
    "prefetch-flood": "PREFETCH_WASTE",
    "write-back-flood": "TIER_QUEUE",
    "host-pressure": "HIT_RATE_MISLEADS",
    "remote-timeout": "READ_FAILURE",
    "copy-contention": "TIER_SLOW",
    "slow-lookup": "LOOKUP_BOUND",
    "long-prefill": "SCHED_QUEUE",
    "tenant-flood": "SCHED_QUEUE",
    "late-prefetch": "PREFETCH_LATE",
    "thrash": "THRASH",
    "noticed-late": "PREFETCH_READY_DELAY",
}


@pytest.mark.parametrize("fault", [None, *STRONG])
def test_ledgers_add_up_to_what_was_simulated(recorded: Recorded, fault: str | None) -> None:
    """The latency that the events show is the simulated one, to the nanosecond, and every nanosecond has an owner."""
    trace = made(recorded, fault, STRONG.get(fault or "", 0.0), requests=800).trace
    population = population_of(recording_of_table(table_of(trace)))

    assert sorted(trace.latency_ns.tolist()) == sorted(population.latency_ns.tolist())
    assert (population.amounts_ns.sum(axis=1) == population.latency_ns).all()
    assert unattributed_share(population) == 0.0


@pytest.mark.parametrize("fault", sorted(set(STRONG) - {MIX}))
def test_a_fault_makes_the_tail_longer(recorded: Recorded, fault: str) -> None:
    """Strong enough, each mechanism shows in the tail within its span."""
    struck = made(recorded, fault, STRONG[fault])

    assert struck.span is not None
    assert lift_of(struck.trace, struck.span) > 0.1


def test_without_a_fault_the_tail_is_as_it_was(recorded: Recorded) -> None:
    """The same span of a healthy population is no different."""
    healthy = made(recorded, None)

    assert healthy.span is not None
    assert abs(lift_of(healthy.trace, healthy.span)) < 0.2


@pytest.mark.parametrize(("fault", "code"), FOUND.items())
def test_a_strong_fault_is_found_by_its_name(recorded: Recorded, fault: str, code: str) -> None:
    """From the events alone the first verdict is the mechanism that was broken, and none of its look-alikes."""
    struck = made(recorded, fault, STRONG[fault], requests=6000)
    judged = judge(table_of(struck.trace), truth_of_made(planned(1, (fault,)), struck))

    assert (code, True) == (judged.run.found, judged.run.is_right), judged.run
    assert (judged.run.lift or 0) > 0.2


@pytest.mark.parametrize(("number", "fault", "code"), [(2132, "mix-shift", "MIX_SHIFT"), (2018, "long-prefill", "SCHED_QUEUE")])
def test_behind_what_requests_wait(number: int, fault: str, code: str) -> None:
    """A wait behind more of what takes long is a shift of the mix; one behind prompts that nobody sent before is a fault."""
    struck = make(planned(number), packaged())
    answer = attribute_recording(recording_of_table(table_of(struck.trace)), struck.span)

    assert (fault,) == planned(number).faults
    assert [code] == [verdict.code for verdict in answer.verdicts][:1], answer


@pytest.mark.parametrize("number", [3012, 3034, 3072])
def test_what_is_small_beside_a_restless_load_is_named(number: int) -> None:
    """A mild shift of the mix, a flood whose beginning lies before the window, a queue at times."""
    struck = make(planned(number), packaged())
    run = judge(table_of(struck.trace), truth_of_made(planned(number), struck)).run

    assert run.is_right, run


def test_a_fault_beside_a_shift_is_not_dissolved_by_it() -> None:
    """Where a shift leaves hardly any hits to lose, it is made smaller: what is computed again is a good part of all."""
    struck = make(planned(20_016), packaged())
    trace, span = struck.trace, struck.span
    assert span is not None
    within = span.has(trace.load.arrived_ns)

    assert ("thrash", MIX) == planned(20_016).faults
    assert trace.lost_tokens[within].sum() > 0.2 * trace.load.computed_tokens[within].sum()


def test_a_shift_of_the_mix_leaves_a_neighbour_alone(recorded: Recorded) -> None:
    """Where a flood comes with a shift, all of the flood comes: else there is no fault to be found."""
    flooded = made(recorded, "tenant-flood", 60.0, requests=2000)
    load, span = flooded.trace.load, flooded.span
    assert span is not None
    scene = Scene(load, world_of(()), Mechanism(), span)
    both = FAULTS[MIX].strike(scene, span, 0.9, np.random.default_rng(1)).load

    assert (load.tenant == NEIGHBOUR).sum() == (both.tenant == NEIGHBOUR).sum() > 0
    assert len(both) < len(load)


def test_the_diagnosis_does_not_see_what_was_injected(recorded: Recorded) -> None:
    """With the drill's own events among the rows, or without them, the answer is the same."""
    struck = made(recorded, "nvme-slow", 10.0, requests=3000)
    table = table_of(struck.trace)
    truth = truth_of_made(planned(1, ("nvme-slow",)), struck)
    assert struck.span is not None
    told = {name: pa.nulls(2, table.schema.field(name).type) for name in table.column_names}
    told |= {
        "kind": pa.array([Kind.FAULT_INJECTED.value, Kind.FAULT_CLEARED.value], pa.uint16()),
        "t_ns": pa.array(list(struck.span), pa.int64()),
        "seq": pa.array([table.num_rows + 1, table.num_rows + 2], pa.uint64()),
        "text": pa.array(["nvme-slow", "nvme-slow"], pa.utf8()),
        **{name: table[name].combine_chunks()[:2] for name in ("engine", "epoch", "rank")},
    }
    with_drill = pa.concat_tables([table, pa.table({name: told[name] for name in table.column_names})])

    assert judge(table, truth).answer == judge(with_drill, truth).answer


def test_the_same_plan_is_the_same_population(recorded: Recorded) -> None:
    """A population can be made again alone, by its number."""
    first, second = (make(planned(9), recorded, (1000, 1001)) for _ in range(2))

    assert first.trace.latency_ns.tolist() == second.trace.latency_ns.tolist()


def test_even_and_odd_numbers_get_the_same_sorts() -> None:
    """What is tuned on the even ones is met again in the odd ones; healthy ones, pairs and shifts are among them."""
    plans = [planned(number) for number in range(2000)]
    kinds = {parity: Counter(_sort(plan.faults) for plan in plans[parity::2]) for parity in (0, 1)}

    assert kinds[0] == kinds[1]
    assert kinds[0] == {"healthy": 200, "pair": 100, "mix": 50, "mix and fault": 100, "single": 550}


def _sort(faults: tuple[str, ...]) -> str:
    """The sort of population."""
    if faults == (NONE,):
        return "healthy"
    if faults == (MIX,):
        return "mix"
    if MIX in faults:
        return "mix and fault"
    return "pair" if len(faults) > 1 else "single"


def test_strengths_reach_from_weak_to_strong() -> None:
    """Every fault has a range to draw from."""
    assert [name for name, fault in FAULTS.items() if fault.low == fault.high] == []
    assert np.isfinite([value for fault in FAULTS.values() for value in (fault.low, fault.high)]).all()
