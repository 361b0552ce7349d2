"""`HIT_RATE_MISLEADS` as a cause: as much is found as before, and it lies in a slower tier now; the tier is as fast as ever."""

from typing import Final

from kvtrail_schema.enums import Tier

from kvtrail_collector.attribution_shapes import Window
from kvtrail_collector.detectors.tier_load import tier_load
from kvtrail_collector.ledger_parts import TIER_NAMES, Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding

MORE_FROM: Final = 1.5
LESS_FROM: Final = 0.8
_READS: Final = (Component.STORAGE_READ, Component.COPY, Component.TIER_QUEUE)


def find(case: Case, tier: Tier | None) -> Finding | None:
    """A request loads more bytes from this tier than before, and fewer from the tiers above it."""
    if tier is None or tier_load(case, tier).is_slower:
        return None
    here, above = _loaded(case, case.window, tier), _loaded(case, case.window, tier, above=True)
    usual_here, usual_above = _loaded(case, case.reference, tier), _loaded(case, case.reference, tier, above=True)
    if not usual_here or not usual_above or here < MORE_FROM * usual_here or above > LESS_FROM * usual_above:
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


def _loaded(case: Case, window: Window, tier: Tier, *, above: bool = False) -> float:
    """Bytes that requests loaded from a tier, or from those above it, a request that came in the window."""
    ops = case.recording.ops
    own = (ops.tier < tier) if above else (ops.tier == tier)
    queued = (ops.queued_ns >= window.start_ns) & (ops.queued_ns < window.end_ns)
    return float(ops.bytes[own & queued & (ops.load == 1)].sum()) / max(window.requests, 1)


DETECTOR: Final = Detector(
    code="HIT_RATE_MISLEADS",
    components=frozenset(_READS),
    action="weigh hits by their tier; give the faster tier back its room",
    find=find,
)
