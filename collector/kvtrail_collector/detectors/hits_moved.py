"""`HIT_RATE_MISLEADS` as a cause: as much is found as before, and it lies in a slower tier now; the tier is as fast as ever.

Only what requests load for themselves counts: somebody's bulk reads are a queue, and more requests that find nothing are a mix.
"""

from typing import Final

import numpy as np
from kvtrail_schema.enums import Tier

from kvtrail_collector.attribution_shapes import Window
from kvtrail_collector.detectors.tier_load import tier_load
from kvtrail_collector.ledger_parts import TIER_NAMES, Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding

MORE_FROM: Final = 1.5
LESS_FROM: Final = 0.9
MOST_BESIDE: Final = 3.0
LEAST_MOVED: Final = 0.1
"""Of a tier that gave nothing before, so much of what the faster ones gave is a move and not a stray block."""
_READS: Final = (Component.STORAGE_READ, Component.COPY, Component.TIER_QUEUE)


def find(case: Case, tier: Tier | None) -> Finding | None:
    """A request that loads anything loads more bytes from this tier than before, and fewer from the tiers above it.

    Where the tier has far more to do than that explains, somebody else's work is what one waits for.
    """
    if tier is None or (load := tier_load(case, tier)).is_slower:
        return None
    (here, above), (usual_here, usual_above) = _loaded(case, case.window, tier), _loaded(case, case.reference, tier)
    is_more_here = here >= max(MORE_FROM * usual_here, LEAST_MOVED * usual_above)
    if not usual_above or not is_more_here or above > LESS_FROM * usual_above:
        return None
    if load.work_ratio * usual_here > MOST_BESIDE * here:
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


def _loaded(case: Case, window: Window, tier: Tier) -> tuple[float, float]:
    """Bytes from a tier, and from those above it, a request that came in a window and loaded anything while it waited."""
    columns, ops = case.recording.columns, case.recording.ops
    arrived, end = (times[columns.own_request] for times in (columns.requests.arrived_ns, columns.requests.end_ns))
    chosen = (arrived >= window.start_ns) & (arrived < window.end_ns) & (ops.load[columns.own_op] == 1)
    chosen &= ops.queued_ns[columns.own_op] <= end
    own = columns.own_op[chosen]
    loading = max(len(np.unique(columns.own_request[chosen])), 1)
    from_here, from_above = (ops.bytes[own][which].sum() for which in (ops.tier[own] == tier, ops.tier[own] < tier))
    return float(from_here) / loading, float(from_above) / loading


DETECTOR: Final = Detector(
    code="HIT_RATE_MISLEADS",
    components=frozenset(_READS),
    action="weigh hits by their tier; give the faster tier back its room",
    find=find,
)
