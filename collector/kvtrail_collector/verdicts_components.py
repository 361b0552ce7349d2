"""Findings that follow from the component alone, for components that no detector tests (LEDGER §6)."""

from collections import Counter
from typing import Final

from kvtrail_collector.attribution_shapes import Window
from kvtrail_collector.ledger import ledger_of
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Finding
from kvtrail_collector.verdicts_table import CODE_OF, RECOMPUTE_CODE_OF, Code

_MOST_EXEMPLARS: Final = 5
_MOST_TAIL: Final = 200
_COMPUTE: Final = (Component.NEW_PREFILL, Component.DECODE_STEP)
FULLER_FROM: Final = 1.25
SLOWER_FROM: Final = 1.25

Found = tuple[str, str, str | None, Finding]
"""A code, its action, its tier, and the finding."""


def component_findings(case: Case, tested: frozenset[Cause]) -> list[Found]:
    """One finding for each code and tier whose components grew, where no detector tests them."""
    causes: dict[tuple[Code, str | None], list[Cause]] = {}
    for cause in case.causes:
        code = None if cause in tested or case.excess_ns(cause) <= 0 else _code_of(case, cause)
        if code is not None:
            causes.setdefault((code, cause.tier), []).append(cause)
    return [(code.name, code.action, tier, _finding(case, own)) for (code, tier), own in causes.items()]


def _code_of(case: Case, cause: Cause) -> Code | None:
    """The code of a component; recomputing has one by its commonest reason in the tail."""
    if cause.component is Component.RECOMPUTE_PREFILL:
        return _recompute_code(case)
    if cause.component in _COMPUTE and not is_shared_compute(case):
        return None
    return CODE_OF.get(cause.component)


def is_shared_compute(case: Case) -> bool:
    """Whether others compute in the same steps: they hold more tokens, and take no longer for each; else computing is slow."""
    (tokens, pace), (usual_tokens, usual_pace) = _steps(case, case.window), _steps(case, case.reference)
    return usual_tokens > 0 and tokens >= FULLER_FROM * usual_tokens and pace < SLOWER_FROM * usual_pace


def _steps(case: Case, window: Window) -> tuple[float, float]:
    """How many tokens the steps of a window hold on average, and how long they take for each."""
    steps = case.recording.steps
    own = (steps.start_ns >= window.start_ns) & (steps.end_ns >= 0) & (steps.end_ns < window.end_ns) & (steps.tokens > 0)
    tokens = int(steps.tokens[own].sum())
    if not tokens:
        return 0.0, 0.0
    return tokens / int(own.sum()), float((steps.end_ns[own] - steps.start_ns[own]).sum()) / tokens


def _recompute_code(case: Case) -> Code | None:
    """The code of recomputing, by its commonest reason in the tail."""
    reasons: Counter[str] = Counter()
    for facts in case.tail[:_MOST_TAIL]:
        for part in ledger_of(facts).parts:
            if part.component is Component.RECOMPUTE_PREFILL:
                reasons[part.reason or ""] += part.ns
    return RECOMPUTE_CODE_OF.get(max(reasons, key=lambda reason: reasons[reason])) if reasons else None


def _finding(case: Case, causes: list[Cause]) -> Finding:
    """What grew, and the arrivals of those whom it hit most."""
    column = case.causes.index(max(causes, key=case.excess_ns))
    rows = case.excess.window.rows
    worst = rows[(-case.requests.amounts_ns[rows, column]).argsort(kind="stable")][:_MOST_EXEMPLARS]
    evidence: dict[str, float | int | str] = {
        f"{cause.component.value}_ms": float(case.excess.window.causes_ns[case.causes.index(cause)]) / 1e6 for cause in causes
    }
    evidence |= {
        f"reference_{cause.component.value}_ms": float(case.excess.reference.causes_ns[case.causes.index(cause)]) / 1e6
        for cause in causes
    }
    return Finding(tuple(causes), evidence, tuple(case.arrival(int(place)) for place in case.requests.place[worst]))
