"""One round: an engine under a plan of hurts that follows from a seed, then the books."""

import random
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tests.chaos.engine_process import Orders
from tests.chaos.parts import Hurt, Part
from tests.chaos.world import World, wait_until

SECONDS: Final = 1.2
_LONGEST_S: Final = 0.8


class Planned(NamedTuple):
    """A hurt, from a second to another one of a round."""

    part: str
    hurt: Hurt
    begin_s: float
    end_s: float

    def __str__(self) -> str:
        """As it stands in a failure."""
        return f"{self.part} {self.hurt.name} {self.begin_s:.2f}–{self.end_s:.2f} s"


class Plan(NamedTuple):
    """What a seed says of a round."""

    seed: int
    hurts: tuple[Planned, ...]
    orders: dict[str, Any]

    def __str__(self) -> str:
        """The seed first: with it the round can be played again."""
        return f"seed {self.seed}: {', '.join(str(one) for one in self.hurts)}; {self.orders}"


def plan_of(seed: int, parts: Sequence[Part]) -> Plan:
    """One to three hurts, of different parts, at random moments, in a small or a roomy setting."""
    chance = random.Random(seed)
    chosen = chance.sample(list(parts), chance.randint(1, min(3, len(parts))))
    hurts = []
    for part in chosen:
        begin = chance.uniform(0.0, SECONDS)
        hurts.append(Planned(part.name, chance.choice(part.hurts), begin, begin + chance.uniform(0.05, _LONGEST_S)))
    orders = {
        "seed": seed,
        "seconds": SECONDS,
        "events_per_s": chance.choice((500, 2000, 5000)),
        "slot_count": chance.choice((1 << 8, 1 << 10, 1 << 13)),
        "spool_bytes": chance.choice((0, 1 << 13, 1 << 15, 1 << 20, 1 << 20)),
    }
    return Plan(seed, tuple(hurts), orders)


def play(world: World, plan: Plan) -> None:
    """Run the round to its end, mend everything, and wait until the books are final."""
    world.begin(lambda world: _orders(world, plan))
    begin = time.monotonic()
    acts = sorted(
        [(one.begin_s, one.hurt.begin) for one in plan.hurts] + [(one.end_s, one.hurt.mend) for one in plan.hurts],
        key=lambda act: act[0],
    )
    for at_s, act in acts:
        time.sleep(max(0.0, begin + at_s - time.monotonic()))
        act(world)
    world.settle()
    wait_until(lambda: _is_final(world, plan), 30, f"final books after {plan}: {world.collector.streams(engine_name(plan))}")


def engine_name(plan: Plan) -> str:
    """Each round is an engine of its own."""
    return f"round-{plan.seed}"


def _orders(world: World, plan: Plan) -> Orders:
    """What the engine of a round is told."""
    return Orders(
        engine=engine_name(plan),
        transport=world.route.transport,
        rings=str(world.rings),
        spool=str(world.spool),
        journal=str(world.journals / engine_name(plan)),
        **plan.orders,
    )


def _is_final(world: World, plan: Plan) -> bool:
    """Whether every stream of the round is accounted for to the last event."""
    streams = world.collector.streams(engine_name(plan))
    return bool(streams) and all(stream["in_flight"] == 0 and stream["unaccounted"] == 0 for stream in streams)
