"""What the steps were spent on while requests waited, and whether more was asked of them or they got slower."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from kvtrail_schema.enums import Reason
from numpy.typing import NDArray

from kvtrail_collector.attribution_shapes import Window
from kvtrail_collector.detectors.victim_ranks import victim_streams
from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.recorded import Recorded
from kvtrail_collector.verdicts_case import Case

FloatArray = NDArray[np.float64]

_MOST_LARGEST: Final = 3


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
        ranked = np.argsort(-self.tokens, kind="stable")[:_MOST_LARGEST]
        return [place for place in ranked.tolist() if self.tokens[place]]


def taken_while(recording: Recorded, victims: IntArray, only: Reason | None = None) -> Taken:
    """Tokens of each request's chunks, each counted for every victim of its stream that waited in the middle of its step.

    A victim waits from its arrival to its own first computed token. With `only`, chunks that are computed for this reason.
    """
    requests, chunks = recording.columns.requests, recording.columns.chunks
    counts = np.ones(len(chunks.request), dtype=np.bool_) if only is None else chunks.reason == only
    taken = np.zeros(len(requests), dtype=np.int64)
    np.add.at(taken, chunks.request, chunks.tokens * _waiting(recording, victims) * counts)
    return Taken(taken, requests.tokens)


def _waiting(recording: Recorded, victims: IntArray) -> IntArray:
    """For each chunk, how many victims of its stream waited in its middle: what other schedulers did, nobody waited for."""
    requests, chunks = recording.columns.requests, recording.columns.chunks
    computed = requests.end_ns.copy()
    first = np.full(len(requests), np.iinfo(np.int64).max)
    np.minimum.at(first, chunks.request, chunks.start_ns)
    computed[chunks.request] = first[chunks.request]
    middle, home = (chunks.start_ns + chunks.end_ns) // 2, requests.stream[chunks.request]
    waiting = np.zeros(len(middle), dtype=np.int64)
    for stream in np.unique(requests.stream[victims]).tolist():
        own, here = victims[requests.stream[victims] == stream], np.flatnonzero(home == stream)
        came = np.searchsorted(np.sort(requests.arrived_ns[own]), middle[here], side="right")
        waiting[here] = came - np.searchsorted(np.sort(computed[own]), middle[here], side="right")
    return np.maximum(waiting, 0)


def demand_and_pace(case: Case) -> tuple[float, float]:
    """How many times the tokens of the reference arrive to be computed, and how many times as long a step takes for one.

    On the ranks that the tail waited on.
    """
    return _ratio(case, _all_new_tokens_per_s), _ratio(case, _ns_per_token)


def _ratio(case: Case, figure: Callable[[Case, Window], float]) -> float:
    """A figure of the window over that of the reference; 0 where the reference has none."""
    here, there = figure(case, case.window), figure(case, case.reference)
    return here / there if there else 0.0


def _all_new_tokens_per_s(case: Case, window: Window) -> float:
    """The same of all requests together."""
    return float(new_tokens_per_s(case, window).sum())


def new_tokens_per_s(case: Case, window: Window) -> FloatArray:
    """For each request of the recording, prompt tokens that arrived to be computed for the first time, per second.

    By arrival, as a backlog that is worked off is no demand; and what is recomputed is none either, nor what came to ranks
    that the tail did not wait on.
    """
    requests, chunks = case.recording.columns.requests, case.recording.columns.chunks
    arrived = requests.arrived_ns[chunks.request]
    own = (arrived >= window.start_ns) & (arrived < window.end_ns) & (chunks.reason == Reason.NEW)
    own &= victim_streams(case)[requests.stream[chunks.request]]
    tokens = np.bincount(chunks.request[own], weights=chunks.tokens[own], minlength=len(requests))
    return np.asarray(tokens * 1e9 / max(window.end_ns - window.start_ns, 1), dtype=np.float64)


def _ns_per_token(case: Case, window: Window) -> float:
    """How long steps took per token."""
    steps = case.recording.steps
    own = (steps.start_ns >= window.start_ns) & (steps.end_ns < window.end_ns) & (steps.end_ns >= 0) & (steps.start_ns >= 0)
    own &= victim_streams(case)[steps.stream]
    tokens = int(np.maximum(steps.tokens[own], 0).sum())
    return float((steps.end_ns[own] - steps.start_ns[own]).sum() / tokens) if tokens else 0.0
