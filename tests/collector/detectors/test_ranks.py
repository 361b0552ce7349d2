"""Ranks are schedulers of their own: what happened on one explains no wait on another."""

from typing import Final

import pyarrow as pa
import pytest
from kvtrail_collector.attribution import attribute
from kvtrail_collector.attribution_shapes import Attribution
from kvtrail_schema.events import Event, SwapInLoaded, SwapInQueued, SwapInStarted

from tests.collector.attribution.synthetic import SECOND, Fault, Plan, simulate, stream_table

WINDOW: Final = (45 * SECOND, 65 * SECOND)
SLOW_STEPS: Final = Plan(1, Fault.SLOW_STEPS, rate_per_s=70, run_s=75, hiccups_per_s=0.02)
TRANSFERS: Final = (SwapInQueued, SwapInStarted, SwapInLoaded)


def told_by_ranks(*ranks: list[Event]) -> Attribution:
    """What is said of the window when these ranks of one engine ran beside each other."""
    tables = [stream_table(events) for events in ranks]
    numbers = [pa.array([rank] * table.num_rows, pa.uint16()) for rank, table in enumerate(tables)]
    named = [
        table.set_column(table.column_names.index("rank"), "rank", own) for table, own in zip(tables, numbers, strict=True)
    ]
    return attribute(pa.concat_tables(named), WINDOW)


def codes(answer: Attribution) -> list[str]:
    """The codes of an answer."""
    return [verdict.code for verdict in answer.verdicts]


@pytest.mark.parametrize(
    "bystander",
    [Plan(2, Fault.LONG_PREFILL, rate_per_s=1e-6), Plan(2, Fault.SLOW_LOOKUP, rate_per_s=3)],
    ids=["long prompts", "slow lookups"],
)
def test_another_rank_is_not_blamed(bystander: Plan) -> None:
    """Steps of one rank got slower; that another rank has long prompts, or slow lookups, is no cause of it."""
    answer = told_by_ranks(simulate(SLOW_STEPS).numbered(), simulate(bystander).numbered())

    assert answer.window is not None
    assert [] == codes(answer)


def test_slow_reads_of_another_rank_are_not_blamed() -> None:
    """Reads wait behind writes on their own rank; that another rank's own reads take long does not make that tier slow."""
    slow: list[Event] = [event for event in simulate(Plan(2, Fault.NVME_SLOW)).numbered() if isinstance(event, TRANSFERS)]
    answer = told_by_ranks(simulate(Plan(3, Fault.NVME_QUEUE, rate_per_s=20)).numbered(), slow)

    assert codes(answer)[:1] == ["TIER_QUEUE"]


def test_the_own_rank_is_blamed() -> None:
    """Long prompts on the rank that waits are the cause, also beside a rank that is well."""
    ranks = [simulate(Plan(seed, fault)).numbered() for seed, fault in ((3, Fault.LONG_PREFILL), (4, Fault.NONE))]
    first = told_by_ranks(*ranks).verdicts[0]

    assert ("SCHED_QUEUE", "bb") == (first.code, first.tenant)
