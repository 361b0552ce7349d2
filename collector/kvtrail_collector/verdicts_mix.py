"""`MIX_SHIFT`: requests of each kind are as fast as before; there are more of the slow kinds."""

from kvtrail_collector.attribution_shapes import Verdict
from kvtrail_collector.bootstrap import Resamples
from kvtrail_collector.verdicts_case import Case
from kvtrail_collector.verdicts_table import MIX_SHIFT


def mix_verdict(case: Case, resamples: Resamples) -> Verdict:
    """The verdict where the whole excess disappears once requests of the same kind are compared."""
    low_ns, high_ns = resamples.mix_interval_ns()
    excess = case.excess
    evidence: dict[str, float | int | str] = {
        "mix_ms": float(excess.mix_ns) / 1e6,
        "mix_low_ms": low_ns / 1e6,
        "mix_high_ms": high_ns / 1e6,
        "within_ms": float(excess.within_ns) / 1e6,
        "reference": case.reference_side,
    }
    return Verdict(
        code=MIX_SHIFT.name,
        tier=None,
        tenant=None,
        component=None,
        share=min(float(excess.mix_ns / excess.tail_ns), 1.0),
        confidence=float((resamples.mix_ns > 0).mean()),
        basis="population",
        window=case.window,
        evidence=evidence,
        events=tuple(case.arrival(int(place)) for place in case.requests.place[excess.whole.rows[:5]]),
        action=MIX_SHIFT.action,
    )
