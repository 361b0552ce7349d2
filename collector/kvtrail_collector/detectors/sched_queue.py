"""`SCHED_QUEUE`: requests wait while the step budget goes to others; names the requests that took it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from kvtrail_schema.enums import Reason, Tier

from kvtrail_collector.attribution_shapes import EventRef, Window
from kvtrail_collector.facts import RequestFacts
from kvtrail_collector.facts_rows import Interval
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding

MORE_FROM: Final = 1.5
LONG_SHARE: Final = 0.2
LONG_GROWTH: Final = 2.0
_LONG_QUANTILE: Final = 0.99
_WAITS: Final = (Component.BUDGET, Component.LIMIT)
_EVENTS: Final = 3


@dataclass(frozen=True, slots=True)
class Taken:
    """Prompt tokens that were computed while victims waited, by the request that they belong to."""

    by_request: dict[int, int]
    requests: tuple[RequestFacts, ...]

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.by_request.values())

    def share_of_longer(self, tokens: float) -> float:
        """The share that went to requests with prompts longer than this."""
        longer = sum(ns for place, ns in self.by_request.items() if self.requests[place].tokens > tokens)
        return longer / self.total if self.total else 0.0

    def largest(self) -> list[tuple[RequestFacts, int]]:
        """The requests that took most, with what they took."""
        ranked = sorted(self.by_request.items(), key=lambda item: (-item[1], item[0]))
        return [(self.requests[place], tokens) for place, tokens in ranked[:_EVENTS]]


def find(case: Case, tier: Tier | None) -> Finding | None:
    """The budget was taken by long prompts, or by more prompt tokens than before; a slower step is not that."""
    if tier is not None:
        return None
    long = float(np.quantile([facts.tokens for facts in case.reference_requests.facts], _LONG_QUANTILE))
    own = taken_while(case.recording.requests, _budget_waits(case.tail))
    usual = taken_while(case.recording.requests, _budget_waits(case.reference_requests.facts))
    share, usual_share = own.share_of_longer(long), usual.share_of_longer(long)
    demand, pace = _ratio(case, _new_tokens_per_s), _ratio(case, _ns_per_token)
    by_long = share >= LONG_SHARE and share >= LONG_GROWTH * usual_share
    by_many = demand >= MORE_FROM and demand >= pace
    if not own.total or not (by_long or by_many):
        return None
    taker, tokens = own.largest()[0]
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
        events=tuple(_arrival(facts) for facts, _ in own.largest()),
        tenant=_tenant(case, taker),
    )


def _budget_waits(victims: tuple[RequestFacts, ...]) -> list[Interval]:
    """For each victim, from its arrival to its own first computed token."""
    return [(facts.arrived_ns, min((chunk.start_ns for chunk in facts.chunks), default=facts.end_ns)) for facts in victims]


def taken_while(requests: tuple[RequestFacts, ...], waits: list[Interval]) -> Taken:
    """Tokens of each request's chunks, each counted for every victim that waited in the middle of its step."""
    chunks = [(place, chunk) for place, facts in enumerate(requests) for chunk in facts.chunks]
    starts, ends = np.sort([start for start, _ in waits]), np.sort([end for _, end in waits])
    middle = np.array([(chunk.start_ns + chunk.end_ns) // 2 for _, chunk in chunks], dtype=np.int64)
    waiting = np.searchsorted(starts, middle, side="right") - np.searchsorted(ends, middle, side="right")
    found: dict[int, int] = {}
    for (place, chunk), victims in zip(chunks, waiting.tolist(), strict=True):
        if victims > 0:
            found[place] = found.get(place, 0) + chunk.tokens * victims
    return Taken(found, requests)


def _ratio(case: Case, figure: Callable[[Case, Window], float]) -> float:
    """A figure of the window over that of the reference; 0 where the reference has none."""
    here, there = figure(case, case.window), figure(case, case.reference)
    return here / there if there else 0.0


def _new_tokens_per_s(case: Case, window: Window) -> float:
    """Prompt tokens that arrived to be computed for the first time, per second.

    By arrival, as a backlog that is worked off is no demand; and what is recomputed is none either.
    """
    own = [
        chunk.tokens
        for facts in case.recording.requests
        if window.start_ns <= facts.arrived_ns < window.end_ns
        for chunk in facts.chunks
        if chunk.reason is Reason.NEW
    ]
    return sum(own) * 1e9 / max(window.end_ns - window.start_ns, 1)


def _ns_per_token(case: Case, window: Window) -> float:
    """How long steps took per token."""
    steps = case.recording.steps
    own = (steps.start_ns >= window.start_ns) & (steps.end_ns < window.end_ns) & (steps.end_ns >= 0) & (steps.start_ns >= 0)
    tokens = int(np.maximum(steps.tokens[own], 0).sum())
    return float((steps.end_ns[own] - steps.start_ns[own]).sum() / tokens) if tokens else 0.0


def _arrival(facts: RequestFacts) -> EventRef:
    """The event that a request began with."""
    return EventRef(facts.timeline.stream.engine, facts.timeline.stream.epoch, facts.timeline.stream.rank, facts.arrived_seq)


def _tenant(case: Case, facts: RequestFacts) -> str | None:
    """The tenant of a request."""
    stream = case.recording.rows.streams.index(facts.timeline.stream)
    return case.blame.tenant_of(stream, facts.ns, facts.request)


DETECTOR: Final = Detector(
    code="SCHED_QUEUE",
    components=frozenset(_WAITS),
    action="lower the limit for long prompts, or the share of a step that one request may take",
    find=find,
)
