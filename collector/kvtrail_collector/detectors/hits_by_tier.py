"""How much requests find in each tier, and whether a tier gives more only since it still fills."""

from typing import Final

import numpy as np
from kvtrail_schema.enums import Tier
from msgspec.structs import replace

from kvtrail_collector.attribution_shapes import Window
from kvtrail_collector.verdicts_case import Case

MORE_FROM: Final = 1.5
FILLS_FROM: Final = 2.0
"""A tier fills where it gave so many times as much in the second half of the reference as in the first."""
AS_BEFORE: Final = 1.5
LEAST_GIVEN: Final = 0.1
"""Of what the faster tiers give: less than that from a tier are stray blocks, by which nobody can tell."""


def loaded_a_request(case: Case, window: Window, tier: Tier) -> tuple[float, float]:
    """Bytes from a tier, and from those above it, a request that came in a window and loaded anything while it waited."""
    columns, ops = case.recording.columns, case.recording.ops
    arrived, end = (times[columns.own_request] for times in (columns.requests.arrived_ns, columns.requests.end_ns))
    chosen = (arrived >= window.start_ns) & (arrived < window.end_ns) & (ops.load[columns.own_op] == 1)
    chosen &= ops.queued_ns[columns.own_op] <= end
    own = columns.own_op[chosen]
    loading = max(len(np.unique(columns.own_request[chosen])), 1)
    from_here, from_above = (ops.bytes[own][which].sum() for which in (ops.tier[own] == tier, ops.tier[own] < tier))
    return float(from_here) / loading, float(from_above) / loading


def fills(case: Case, tier: Tier) -> bool:
    """Whether a tier filled while the reference lasted, as after a start, and nothing but that changed.

    It gave more and more then, and towards its end as much left the faster tiers as in the window: nobody took their room.
    """
    middle_ns = (case.reference.start_ns + case.reference.end_ns) // 2
    first, second = replace(case.reference, end_ns=middle_ns), replace(case.reference, start_ns=middle_ns)
    (now, above), (before, _) = loaded_a_request(case, second, tier), loaded_a_request(case, first, tier)
    if now <= FILLS_FROM * before or now < LEAST_GIVEN * above:
        return False
    return _leaving_a_second(case, case.window, tier) < AS_BEFORE * _leaving_a_second(case, second, tier)


def has_more_by_filling(case: Case, tier: Tier, work_ratio: float) -> bool:
    """Whether a tier that filled is asked for more work, and by what requests find there alone: nobody else brought any.

    `work_ratio` is how many times the device time of the reference it is.
    """
    here, usual = (loaded_a_request(case, window, tier)[0] for window in (case.window, case.reference))
    return here >= MORE_FROM * usual and work_ratio * usual <= AS_BEFORE * here and fills(case, tier)


def _leaving_a_second(case: Case, window: Window, tier: Tier) -> float:
    """Copies that leave the next faster tier per second of a window; where none is told of, what is written to the tier.

    A copy that lies below already leaves without being written, so what is written alone would not show that room was taken.
    """
    lasted_s = max(window.end_ns - window.start_ns, 1) / 1e9
    recording, both = case.recording, (case.reference, case.window)
    whole = min(one.start_ns for one in both), max(one.end_ns for one in both)
    for above in [other for other in reversed(Tier) if other < tier]:
        if recording.evicted(whole, above):
            return recording.evicted((window.start_ns, window.end_ns), above) / lasted_s
    ops = recording.ops
    written = case.ops_queued_in(window, tier) & (ops.load == 0) & (ops.dst == tier)
    return float(written.sum()) / lasted_s
