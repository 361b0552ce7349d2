"""`MIX_SHIFT`: requests of each kind are as fast as before; there are more of the slow kinds."""

from typing import Final

from kvtrail_collector.attribution_shapes import Verdict
from kvtrail_collector.bootstrap import Resamples
from kvtrail_collector.detectors.kinds_moved import is_shift
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.verdicts_case import Case
from kvtrail_collector.verdicts_table import MIX_SHIFT

BESIDE_FROM: Final = 0.2
_OF_STEPS: Final = (Component.BUDGET, Component.LIMIT, Component.NEW_PREFILL)


def is_mix_alone(case: Case) -> bool:
    """Whether another mix came, took the steps, and nothing but waiting for steps grew beside it for sure."""
    positive = sum(max(float(ns), 0.0) for ns in case.excess.causes_ns)
    grown = (
        column
        for column, cause in enumerate(case.causes)
        if cause.component not in _OF_STEPS and float(case.excess.causes_ns[column]) >= BESIDE_FROM * positive > 0
    )
    return is_shift(case) and all(case.resamples.interval_ns([column])[0] <= 0 for column in grown)


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
        confidence=min(float((resamples.mix_ns > 0).mean()), case.window.coverage, case.reference.coverage),
        basis="population",
        window=case.window,
        evidence=evidence,
        events=tuple(case.arrival(int(place)) for place in case.requests.place[excess.whole.rows[:5]]),
        action=MIX_SHIFT.action,
    )
