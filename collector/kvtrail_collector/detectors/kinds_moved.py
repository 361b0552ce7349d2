"""Did another mix of requests come? How much of the load moved to other kinds, and what those took of the steps."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from kvtrail_collector.attribution_strata import strata_of
from kvtrail_collector.detectors.steps_taken import FloatArray, demand_and_pace, taken_while
from kvtrail_collector.verdicts_case import Case

MOVED_FROM: Final = 0.1
GROWN_FROM: Final = 1.25
TAKEN_FROM: Final = 0.5
MOST_NEW: Final = 0.05
MOST_DEMAND: Final = 1.5
MOST_PACE: Final = 1.25


@dataclass(frozen=True, slots=True)
class KindsMoved:
    """How much of the load moved to other kinds, and what of the steps' tokens went to kinds that grew, and to new ones."""

    moved: float
    taken_by_grown: float
    taken_by_new: float

    @property
    def is_much(self) -> bool:
        """A tenth of the requests are of other kinds than before, known ones, and those took most of the steps."""
        return self.moved >= MOVED_FROM and self.taken_by_grown >= TAKEN_FROM and self.taken_by_new < MOST_NEW


def is_shift(case: Case) -> bool:
    """Whether the mix moved, and neither is much more asked for than usual, nor are steps slower."""
    demand, pace = demand_and_pace(case)
    return demand < MOST_DEMAND and pace < MOST_PACE and kinds_moved(case).is_much


def kinds_moved(case: Case) -> KindsMoved:
    """Shares of kinds in both windows, and who took the steps while the tail waited. Milliseconds."""
    strata = strata_of(case.requests, case.reference_requests)
    here, there = (_shares(strata.sizes(own)) for own in (strata.window, strata.reference))
    grown = here >= GROWN_FROM * there
    tokens = taken_while(case.recording, case.requests.place[case.excess.window.rows]).tokens[case.requests.place]
    total = max(float(tokens.sum()), 1.0)
    new = strata.window < 0
    of_grown = ~new & grown[np.maximum(strata.window, 0)]
    taken_by_grown, taken_by_new = (float(tokens[which].sum()) / total for which in (of_grown, new))
    return KindsMoved(float(np.maximum(here - there, 0).sum()), taken_by_grown, taken_by_new)


def _shares(sizes: list[int]) -> FloatArray:
    """Shares that add up to 1."""
    return np.array(sizes, dtype=np.float64) / max(sum(sizes), 1)
