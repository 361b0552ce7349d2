"""Nothing is lost in silence: real parts killed, paused, cut off and without room, at random seeded moments.

`KVTRAIL_LONG=1` plays 200 rounds and more, `KVTRAIL_CHAOS_SEED` begins them elsewhere. A failure names its seed.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.parts import PARTS
from tests.chaos.rounds import Plan, engine_name, plan_of, play
from tests.chaos.verdict import check, journal_of, stored_streams
from tests.chaos.world import World

FIRST_SEED: Final = int(os.environ.get("KVTRAIL_CHAOS_SEED", "1"))
GROUPS: Final = 20 if os.environ.get("KVTRAIL_LONG") == "1" else 2
ROUNDS: Final = 10  # a group, in one world


@contextmanager
def world_in(folder: Path, port: int) -> Iterator[World]:
    """A world that ends with the test."""
    world = World(folder, port)
    try:
        yield world
    finally:
        world.close()


def play_all(folder: Path, port: int, seeds: range) -> list[Plan]:
    """Play rounds in one world, one after another; a failure tells the plan that led to it."""
    plans = [plan_of(seed, PARTS) for seed in seeds]
    with world_in(folder, port) as world:
        for plan in plans:
            try:
                play(world, plan)
            except Exception as error:
                error.add_note(f"chaos: {plan}")
                raise
    return plans


@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", range(GROUPS))
def test_whatever_is_hurt_the_books_balance(group: int, private_dir: Path, free_port: int) -> None:
    """After each round nothing is unaccounted; no row stands twice, order holds, and the state is the engine's own."""
    first = FIRST_SEED + group * ROUNDS
    plans = {engine_name(plan): plan for plan in play_all(private_dir, free_port, range(first, first + ROUNDS))}
    compared = 0
    for stream in stored_streams(private_dir / "events.duckdb"):
        journal = private_dir / "journals" / f"{stream.engine}-{stream.epoch}"
        try:
            compared += check(stream, journal_of(journal) if journal.exists() else [])
        except AssertionError as error:
            error.add_note(f"chaos: {plans[stream.engine]}")
            raise

    assert compared > 500 * ROUNDS / 10
