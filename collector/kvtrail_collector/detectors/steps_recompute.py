"""`THRASH` as a cause: steps compute again what was evicted, and everybody waits for them; new prompts are not that."""

from typing import Final

from kvtrail_schema.enums import Reason, Tier

from kvtrail_collector.detectors.steps_taken import taken_while
from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding

SHARE: Final = 0.2
GROWTH: Final = 1.5
_EXPLAINED: Final = (Component.RECOMPUTE_PREFILL, Component.BUDGET, Component.LIMIT, Component.CAPACITY)
_BESIDE: Final = ((Component.BUDGET, "SCHED_QUEUE"), (Component.CAPACITY, "CAPACITY_CLIFF"))


def find(case: Case, tier: Tier | None) -> Finding | None:
    """A good part of what was computed while the tail waited had been evicted before, and more than usual.

    Who waits for room then waits for what the same small pools hold up, as who waits for a step does.
    """
    if tier is not None:
        return None
    victims, others = case.requests.place[case.excess.window.rows], case.reference_requests.place
    share, usual = _evicted_share(case, victims), _evicted_share(case, others)
    if share < SHARE or share < GROWTH * usual:
        return None
    largest = taken_while(case.recording, victims, Reason.EVICTED).largest()
    return Finding(
        explains=tuple(Cause(component, None) for component in _EXPLAINED),
        evidence={"evicted_share_of_tokens": share, "reference_evicted_share_of_tokens": usual},
        events=tuple(case.arrival(place) for place in largest),
        also=tuple(code for component, code in _BESIDE if case.excess_ns(Cause(component, None)) > 0),
    )


def _evicted_share(case: Case, victims: IntArray) -> float:
    """Of the prompt tokens that were computed while some requests waited, or for them, those that had been evicted."""
    total = taken_while(case.recording, victims).total
    return taken_while(case.recording, victims, Reason.EVICTED).total / total if total else 0.0


DETECTOR: Final = Detector(
    code="THRASH",
    components=frozenset(_EXPLAINED),
    action="lower admission, so that what is asked for again soon stays",
    find=find,
)
