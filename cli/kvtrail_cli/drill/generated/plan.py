"""Which populations are made: a function of the number of each, so that any of them can be made again alone."""

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from kvtrail_cli.drill.generated.mechanism import FAULTS
from kvtrail_cli.drill.score import MIX, NONE

_CYCLE: Final = 20
_HEALTHY: Final = frozenset({0, 1, 2, 3})
_PAIRED: Final = frozenset({4, 5})
_MIXED: Final = frozenset({6})
_MIXED_AND_BROKEN: Final = frozenset({7, 8})
_BELOW_HOST: Final = frozenset(
    {"nvme-slow", "nvme-queue", "prefetch-flood", "write-back-flood", "host-pressure", "late-prefetch", "remote-timeout"}
)
SINGLES: Final = tuple(name for name in FAULTS if name != MIX)
PAIRS: Final = tuple(pair for pair in combinations(SINGLES, 2) if not set(pair) <= _BELOW_HOST)
"""Two faults at once. Of those that strike below host only one: there they hide each other in one queue."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One population to be made; what is drawn for it follows from its number."""

    number: int
    faults: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name under which it is kept."""
        return f"{'+'.join(self.faults)}-{self.number}"


def planned(number: int, only: tuple[str, ...] = ()) -> Planned:
    """The population of this number: of twenty, four have no fault, two have two, one has a shift of the mix, two have both.

    Even and odd numbers get the same sorts. With `only`, those faults in turn.
    """
    turn, place = divmod(number // 2, _CYCLE)
    rng = np.random.default_rng((number, 11))
    if only:
        return Planned(number, (only[(number // 2) % len(only)],))
    if place in _HEALTHY:
        return Planned(number, (NONE,))
    if place in _PAIRED:
        return Planned(number, PAIRS[int(rng.integers(len(PAIRS)))])
    if place in _MIXED:
        return Planned(number, (MIX,))
    single = SINGLES[(turn * _CYCLE + place) % len(SINGLES)]
    return Planned(number, (single, MIX) if place in _MIXED_AND_BROKEN else (single,))
