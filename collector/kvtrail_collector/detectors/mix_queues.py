"""`MIX_SHIFT` as a cause: requests wait behind others, since more of those come that take long; as much is computed as before.

What a shift of the mix costs a request of the same kind is a queue, and no reweighting takes it away.
"""

from typing import Final, NamedTuple

import numpy as np
from kvtrail_schema.enums import Tier

from kvtrail_collector.attribution_strata import strata_of
from kvtrail_collector.detectors.sched_queue import FloatArray, demand_and_pace, taken_while
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding
from kvtrail_collector.verdicts_table import MIX_SHIFT

MOVED_FROM: Final = 0.1
GROWN_FROM: Final = 1.25
TAKEN_FROM: Final = 0.5
MOST_NEW: Final = 0.05
MOST_DEMAND: Final = 1.5
MOST_PACE: Final = 1.25
_WAITS: Final = (Component.BUDGET, Component.LIMIT)
_EVENTS: Final = 3


class _Kinds(NamedTuple):
    """How much of the load moved to other kinds, and what of the steps' tokens went to kinds that grew, and to new ones."""

    moved: float
    taken_by_grown: float
    taken_by_new: float


def find(case: Case, tier: Tier | None) -> Finding | None:
    """A tenth of the requests are of other kinds, and those took the steps; more demand, or slower steps, are not that."""
    if tier is not None:
        return None
    demand, pace = demand_and_pace(case)
    kinds = _kinds(case)
    is_usual = demand < MOST_DEMAND and pace < MOST_PACE and kinds.taken_by_new < MOST_NEW
    if not is_usual or kinds.moved < MOVED_FROM or kinds.taken_by_grown < TAKEN_FROM:
        return None
    return Finding(
        explains=tuple(Cause(component, None) for component in _WAITS),
        evidence={
            "moved_share": kinds.moved,
            "taken_by_kinds_that_grew": kinds.taken_by_grown,
            "demand_ratio": demand,
            "step_ns_per_token_ratio": pace,
        },
        events=tuple(case.arrival(int(place)) for place in case.requests.place[case.excess.window.rows][:_EVENTS]),
    )


def _kinds(case: Case) -> _Kinds:
    """Shares of kinds in both windows, and who took the steps while the tail waited."""
    strata = strata_of(case.requests, case.reference_requests)
    here, there = (_shares(strata.sizes(own)) for own in (strata.window, strata.reference))
    grown = here >= GROWN_FROM * there
    tokens = taken_while(case.recording, case.requests.place[case.excess.window.rows]).tokens[case.requests.place]
    total = max(float(tokens.sum()), 1.0)
    new = strata.window < 0
    of_grown = ~new & grown[np.maximum(strata.window, 0)]
    return _Kinds(float(np.maximum(here - there, 0).sum()), tokens[of_grown].sum() / total, tokens[new].sum() / total)


def _shares(sizes: list[int]) -> FloatArray:
    """Shares that add up to 1."""
    return np.array(sizes, dtype=np.float64) / max(sum(sizes), 1)


DETECTOR: Final = Detector(
    code=MIX_SHIFT.name,
    components=frozenset(_WAITS),
    action="none is broken: give the kinds that there are more of a smaller share of a step",
    find=find,
)
