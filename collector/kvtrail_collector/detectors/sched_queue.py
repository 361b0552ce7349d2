"""`SCHED_QUEUE`: requests wait while the step budget goes to others; names the requests that took it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from kvtrail_schema.enums import Reason, Tier
from kvtrail_schema.identity import NamespaceId
from numpy.typing import NDArray

from kvtrail_collector.attribution_shapes import EventRef, Window
from kvtrail_collector.facts import RequestFacts
from kvtrail_collector.facts_build import Recording
from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding

FloatArray = NDArray[np.float64]

MORE_FROM: Final = 1.5
LONG_SHARE: Final = 0.2
LONG_GROWTH: Final = 2.0
_LONG_QUANTILE: Final = 0.99
_WAITS: Final = (Component.BUDGET, Component.LIMIT)
_EVENTS: Final = 3


@dataclass(frozen=True, slots=True)
class Taken:
    """Prompt tokens that were computed while victims waited, by the request that they belong to."""

    tokens: IntArray
    prompt_tokens: IntArray

    @property
    def total(self) -> int:
        """All of them."""
        return int(self.tokens.sum())

    def share_of_longer(self, tokens: float) -> float:
        """The share that went to requests with prompts longer than this."""
        longer = int(self.tokens[self.prompt_tokens > tokens].sum())
        return longer / self.total if self.total else 0.0

    def largest(self) -> list[int]:
        """The requests that took most."""
        ranked = np.argsort(-self.tokens, kind="stable")[:_EVENTS]
        return [place for place in ranked.tolist() if self.tokens[place]]


def find(case: Case, tier: Tier | None) -> Finding | None:
    """The budget was taken by long prompts, or by more prompt tokens than before; a slower step is not that."""
    if tier is not None:
        return None
    long = float(np.quantile(case.reference_requests.prompt_tokens, _LONG_QUANTILE))
    own = taken_while(case.recording, case.requests.place[case.excess.window.rows])
    usual = taken_while(case.recording, case.reference_requests.place)
    share, usual_share = own.share_of_longer(long), usual.share_of_longer(long)
    demand, pace = demand_and_pace(case)
    by_long = share >= LONG_SHARE and share >= LONG_GROWTH * usual_share
    by_many = demand >= MORE_FROM and demand >= pace
    if not own.total or not (by_long or by_many):
        return None
    largest = [case.recording.requests[place] for place in own.largest()]
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
        tenant=_tenant_that_grew(case, own, usual),
    )


def taken_while(recording: Recording, victims: IntArray, only: Reason | None = None) -> Taken:
    """Tokens of each request's chunks, each counted for every victim that waited in the middle of its step.

    A victim waits from its arrival to its own first computed token. With `only`, chunks that are computed for this reason.
    """
    requests, chunks = recording.columns.requests, recording.columns.chunks
    computed = requests.end_ns.copy()
    first = np.full(len(requests), np.iinfo(np.int64).max)
    np.minimum.at(first, chunks.request, chunks.start_ns)
    computed[chunks.request] = first[chunks.request]
    starts, ends = np.sort(requests.arrived_ns[victims]), np.sort(computed[victims])
    middle = (chunks.start_ns + chunks.end_ns) // 2
    waiting = np.searchsorted(starts, middle, side="right") - np.searchsorted(ends, middle, side="right")
    taken = np.zeros(len(requests), dtype=np.int64)
    counts = np.ones(len(middle), dtype=np.bool_) if only is None else chunks.reason == only
    np.add.at(taken, chunks.request, chunks.tokens * np.maximum(waiting, 0) * counts)
    return Taken(taken, requests.tokens)


def demand_and_pace(case: Case) -> tuple[float, float]:
    """How many times the tokens of the reference arrive to be computed, and how many times as long a step takes for one."""
    return _ratio(case, _new_tokens_per_s), _ratio(case, _ns_per_token)


def _ratio(case: Case, figure: Callable[[Case, Window], float]) -> float:
    """A figure of the window over that of the reference; 0 where the reference has none."""
    here, there = figure(case, case.window), figure(case, case.reference)
    return here / there if there else 0.0


def _new_tokens_per_s(case: Case, window: Window) -> float:
    """Prompt tokens that arrived to be computed for the first time, per second.

    By arrival, as a backlog that is worked off is no demand; and what is recomputed is none either.
    """
    chunks = case.recording.columns.chunks
    arrived = case.recording.columns.requests.arrived_ns[chunks.request]
    own = (arrived >= window.start_ns) & (arrived < window.end_ns) & (chunks.reason == Reason.NEW)
    return float(chunks.tokens[own].sum()) * 1e9 / max(window.end_ns - window.start_ns, 1)


def _ns_per_token(case: Case, window: Window) -> float:
    """How long steps took per token."""
    steps = case.recording.steps
    own = (steps.start_ns >= window.start_ns) & (steps.end_ns < window.end_ns) & (steps.end_ns >= 0) & (steps.start_ns >= 0)
    tokens = int(np.maximum(steps.tokens[own], 0).sum())
    return float((steps.end_ns[own] - steps.start_ns[own]).sum() / tokens) if tokens else 0.0


def _arrival(facts: RequestFacts) -> EventRef:
    """The event that a request began with."""
    return EventRef(facts.timeline.stream.engine, facts.timeline.stream.epoch, facts.timeline.stream.rank, facts.arrived_seq)


def _tenant_that_grew(case: Case, own: Taken, usual: Taken) -> str | None:
    """The tenant whose share of what was computed while others waited grew most: one request may be anybody's."""
    spaces, place = np.unique(case.recording.columns.requests.ns, return_inverse=True)
    here, there = (_shares(taken.tokens, place, len(spaces)) for taken in (own, usual))
    most = int(np.argmax(here - there))
    return case.blame.tenant_of(0, NamespaceId(int(spaces[most])), None)


def _shares(tokens: IntArray, place: IntArray, count: int) -> FloatArray:
    """The share of each namespace."""
    sums = np.bincount(place, weights=tokens, minlength=count)
    return np.asarray(sums / max(float(sums.sum()), 1.0))


DETECTOR: Final = Detector(
    code="SCHED_QUEUE",
    components=frozenset(_WAITS),
    action="lower the limit for long prompts, or the share of a step that one request may take",
    find=find,
)
