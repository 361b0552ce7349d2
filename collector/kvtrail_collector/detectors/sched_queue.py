"""`SCHED_QUEUE`: requests wait while the step budget goes to others; names the requests that took it."""

from typing import Final

import numpy as np
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import NamespaceId

from kvtrail_collector.attribution_shapes import EventRef
from kvtrail_collector.detectors.kinds_moved import is_shift
from kvtrail_collector.detectors.steps_taken import FloatArray, Taken, demand_and_pace, new_tokens_per_s, taken_while
from kvtrail_collector.facts import RequestFacts
from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding

MORE_FROM: Final = 1.5
LONG_SHARE: Final = 0.2
LONG_GROWTH: Final = 2.0
_LONG_QUANTILE: Final = 0.99
_WAITS: Final = (Component.BUDGET, Component.LIMIT)


def find(case: Case, tier: Tier | None) -> Finding | None:
    """The budget was taken by long prompts, or by more prompt tokens than before; a slower step is not that.

    Nor is it where many more come of kinds that came before, and hardly more is asked for: that is a shift of the mix.
    """
    if tier is not None:
        return None
    long = float(np.quantile(case.reference_requests.prompt_tokens, _LONG_QUANTILE))
    own = taken_while(case.recording, case.requests.place[case.excess.window.rows])
    usual = taken_while(case.recording, case.reference_requests.place)
    share, usual_share = own.share_of_longer(long), usual.share_of_longer(long)
    demand, pace = demand_and_pace(case)
    by_long = share >= LONG_SHARE and share >= LONG_GROWTH * usual_share and not is_shift(case)
    by_many = demand >= MORE_FROM and demand >= pace
    largest = case.recording.facts(own.largest()) if by_long or by_many else ()
    if not largest:
        return None
    taker, tokens = largest[0], int(own.tokens.max())
    evidence: dict[str, float | int | str] = {
        "taken_by": taker.label,
        "taker_prompt_tokens": taker.tokens,
        "taker_share": tokens / own.total,
        "long_prompt_tokens": int(long),
        "long_prompts_share": share,
        "reference_long_prompts_share": usual_share,
        "demand_ratio": demand,
        "step_ns_per_token_ratio": pace,
    }
    return Finding(
        explains=tuple(Cause(component, None) for component in _WAITS),
        evidence=evidence,
        events=tuple(_arrival(facts) for facts in largest),
        tenant=_tenant_of_longer(case, own, usual, long) if by_long else _tenant_that_asks_more(case),
    )


def _arrival(facts: RequestFacts) -> EventRef:
    """The event that a request began with."""
    return EventRef(facts.timeline.stream.engine, facts.timeline.stream.epoch, facts.timeline.stream.rank, facts.arrived_seq)


def _tenant_of_longer(case: Case, own: Taken, usual: Taken, tokens: float) -> str | None:
    """The tenant whose long prompts took a larger share of the steps than before; one request may be anybody's."""
    here, there = (_by_space(case, np.where(taken.prompt_tokens > tokens, taken.tokens, 0)) for taken in (own, usual))
    return _tenant(case, here / max(own.total, 1) - there / max(usual.total, 1))


def _tenant_that_asks_more(case: Case) -> str | None:
    """The tenant that asks for more tokens a second than before than any other."""
    here, there = (_by_space(case, new_tokens_per_s(case, window)) for window in (case.window, case.reference))
    return _tenant(case, here - there)


def _by_space(case: Case, tokens: FloatArray | IntArray) -> FloatArray:
    """Tokens of requests, added up by namespace."""
    spaces, place = np.unique(case.recording.columns.requests.ns, return_inverse=True)
    return np.bincount(place, weights=tokens, minlength=len(spaces)).astype(np.float64)


def _tenant(case: Case, grown: FloatArray) -> str | None:
    """The tenant of the namespace that grew most."""
    spaces = np.unique(case.recording.columns.requests.ns)
    return case.blame.tenant_of(0, NamespaceId(int(spaces[int(np.argmax(grown))])), None)


DETECTOR: Final = Detector(
    code="SCHED_QUEUE",
    components=frozenset(_WAITS),
    action="lower the limit for long prompts, or the share of a step that one request may take",
    find=find,
)
