"""Promises of silence: what is well gives no verdict, neither of counts nor of windows."""

import dataclasses
import itertools
import os
import random
from pathlib import Path

import msgspec
import pytest
from kvtrail_collector.diagnose_file import diagnose_lines
from kvtrail_engine.engine import Engine
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.events import Event
from kvtrail_schema.identity import Epoch, Rank, Stream
from kvtrail_schema.jsonl import write_line

from tests.collector.attribution.synthetic import Fault, Plan, simulate
from tests.engine.engines import ask, tiny

HOME = Stream("well", Epoch(5), Rank(0))
SEEDS = range(300 if os.environ.get("KVTRAIL_LONG") == "1" else 3)
TENTH = 10 if os.environ.get("KVTRAIL_LONG") == "1" else 1


def codes(events: list[Event]) -> list[str]:
    """The verdicts on some events."""
    numbered = (msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(events, start=1))
    found = diagnose_lines(write_line(HOME, event) for event in numbered)

    assert [] == [one for one in found.missing if "could not be computed" in one.so_what]
    return [verdict.code for verdict in found.verdicts]


def test_a_real_engine_that_is_well(tmp_path: Path) -> None:
    """An engine whose hot prompts fit, and which evicts the others once each, gives no verdict."""
    told, rng, others = CollectingEmitter(), random.Random(1), itertools.count(100)
    with Engine(tiny(tmp_path / "engine"), [told.as_emitter()]) as engine:
        for turn in range(40):
            hot = turn % 3 > 0
            engine.submit(ask(rng.randrange(3) if hot else next(others), output_tokens=3)).result(60)

    assert len(told.events) > 1_000
    assert [] == codes(told.events)


def plan_of(seed: int) -> Plan:
    """A run in which nothing goes wrong: more or less load than a usual one, longer or shorter, on more or fewer disks."""
    rng = random.Random(f"well {seed}")
    return Plan(
        seed=seed,
        fault=Fault.NONE,
        run_s=rng.uniform(10, 40),
        rate_per_s=rng.uniform(8, 40),
        hiccups_per_s=rng.choice([0.0, 0.1, 0.3]),
        budget_tokens=rng.choice([512, 768, 1024]),
        workers=rng.choice([4, 6, 8]),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_simulated_engine_that_is_well(seed: int) -> None:
    """Loads with restores, queues and hiccups, and no fault, give no verdict, whatever their size."""
    assert [] == codes(simulate(plan_of(seed)).numbered())


@pytest.mark.parametrize("seed", SEEDS[:: len(SEEDS) // TENTH])
def test_ranks_that_are_well(seed: int) -> None:
    """Two ranks side by side, one of them busier, and nothing is wrong with either."""
    lines = [
        write_line(Stream("well", Epoch(5), Rank(rank)), event)
        for rank in range(2)
        for event in simulate(dataclasses.replace(plan_of(seed + 1_000 * rank), run_s=12.0)).numbered()
    ]

    assert [] == [verdict.code for verdict in diagnose_lines(lines).verdicts]
