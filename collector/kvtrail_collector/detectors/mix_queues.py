"""`MIX_SHIFT` as a cause: requests wait behind others, since more of those come that take long; as much is computed as before.

What a shift of the mix costs a request of the same kind is a queue, and no reweighting takes it away.
"""

from typing import Final

from kvtrail_schema.enums import Tier

from kvtrail_collector.detectors.kinds_moved import is_shift, kinds_moved
from kvtrail_collector.detectors.steps_taken import demand_and_pace
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding
from kvtrail_collector.verdicts_table import MIX_SHIFT

_WAITS: Final = (Component.BUDGET, Component.LIMIT)
_EVENTS: Final = 3


def find(case: Case, tier: Tier | None) -> Finding | None:
    """A tenth of the requests are of other kinds, and those took the steps; more demand, or slower steps, are not that."""
    if tier is not None or not is_shift(case):
        return None
    kinds = kinds_moved(case)
    demand, pace = demand_and_pace(case)
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


DETECTOR: Final = Detector(
    code=MIX_SHIFT.name,
    components=frozenset(_WAITS),
    action="none is broken: give the kinds that there are more of a smaller share of a step",
    find=find,
)
