"""`HIT_RATE_MISLEADS` as a cause: as much is found as before, and it lies in a slower tier now; the tier is as fast as ever.

Only what requests load for themselves counts: somebody's bulk reads are a queue, and more requests that find nothing are a mix.
A tier that still fills is none either: what it gives grows as it holds more, and no other tier lost its room.
"""

from typing import Final

from kvtrail_schema.enums import Tier

from kvtrail_collector.detectors.hits_by_tier import LEAST_GIVEN, MORE_FROM, fills, loaded_a_request
from kvtrail_collector.detectors.tier_load import tier_load
from kvtrail_collector.ledger_parts import TIER_NAMES, Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding

LESS_FROM: Final = 0.9
MOST_BESIDE: Final = 3.0
_READS: Final = (Component.STORAGE_READ, Component.COPY, Component.TIER_QUEUE)


def find(case: Case, tier: Tier | None) -> Finding | None:
    """A request that loads anything loads more bytes from this tier than before, and fewer from the tiers above it.

    Where the tier has far more to do than that explains, somebody else's work is what one waits for.
    """
    if tier is None or (load := tier_load(case, tier)).is_slower:
        return None
    (here, above), (usual_here, usual_above) = (
        loaded_a_request(case, case.window, tier),
        loaded_a_request(case, case.reference, tier),
    )
    is_more_here = here >= max(MORE_FROM * usual_here, LEAST_GIVEN * usual_above)
    if not usual_above or not is_more_here or above > LESS_FROM * usual_above:
        return None
    if load.work_ratio * usual_here > MOST_BESIDE * here or fills(case, tier):
        return None
    name = TIER_NAMES[tier]
    return Finding(
        explains=tuple(Cause(component, name) for component in _READS),
        evidence={
            "bytes_a_request": here,
            "reference_bytes_a_request": usual_here,
            "faster_bytes_a_request": above,
            "reference_faster_bytes_a_request": usual_above,
        },
        events=tuple(case.arrival(int(place)) for place in case.requests.place[case.excess.window.rows][:3]),
        also=("TIER_QUEUE",) if case.excess_ns(Cause(Component.TIER_QUEUE, name)) > 0 else (),
    )


DETECTOR: Final = Detector(
    code="HIT_RATE_MISLEADS",
    components=frozenset(_READS),
    action="weigh hits by their tier; give the faster tier back its room",
    find=find,
)
