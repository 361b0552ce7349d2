"""Promises of silence: what is well gives no verdict, neither of counts nor of windows."""

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
SEEDS = range(300 if os.environ.get("KVTRAIL_LONG") == "1" else 2)


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


@pytest.mark.parametrize("seed", SEEDS)
def test_a_simulated_engine_that_is_well(seed: int) -> None:
    """Loads with restores, queues and hiccups, and no fault, give no verdict."""
    run = simulate(Plan(seed=seed, fault=Fault.NONE, run_s=30.0))

    assert [] == codes(run.numbered())
