"""Findings that follow from the component alone, for components that no detector tests (LEDGER §6)."""

from collections import Counter
from typing import Final

from kvtrail_collector.ledger import ledger_of
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Finding
from kvtrail_collector.verdicts_table import CODE_OF, RECOMPUTE_CODE_OF, Code

_MOST_EXEMPLARS: Final = 5
_MOST_TAIL: Final = 200

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
    if cause.component is not Component.RECOMPUTE_PREFILL:
        return CODE_OF.get(cause.component)
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
