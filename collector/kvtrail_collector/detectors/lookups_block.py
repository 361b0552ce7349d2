"""`LOOKUP_BOUND` as a cause: lookups take long, and where one thread makes them, others wait behind them for their place."""

from typing import Final

import numpy as np
from kvtrail_schema.enums import Tier

from kvtrail_collector.detectors.steps_taken import demand_and_pace
from kvtrail_collector.detectors.victim_ranks import victim_streams
from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Detector, Finding

MOST: Final = 0.5
MUCH: Final = 0.2
"""With no more to compute than usual, so much of the waiting is enough: the rest is the backlog that lookups left behind."""
MOST_DEMAND: Final = 1.25
GROWTH: Final = 2.0
_EXPLAINED: Final = (Component.LOOKUP, Component.BUDGET)


def find(case: Case, tier: Tier | None) -> Finding | None:
    """Lookups grew, and most of what the tail waited for its place somebody's lookup ran, or much of it without more to do."""
    if tier is not None:
        return None
    victims = case.requests.place[case.excess.window.rows]
    growth = _mean_ns(case, case.requests.place) / max(_mean_ns(case, case.reference_requests.place), 1.0)
    waited_ns = sum(case.excess.window.causes_ns[case.causes.index(cause)] for cause in _causes(case))
    demand, _ = demand_and_pace(case)
    is_usual = demand < MOST_DEMAND
    covered_ns = float(_covered_ns(case, victims, whole=is_usual).mean()) if len(victims) else 0.0
    if growth < GROWTH or covered_ns < (MUCH if is_usual else MOST) * float(waited_ns):
        return None
    return Finding(
        explains=tuple(Cause(component, None) for component in _EXPLAINED),
        evidence={
            "lookup_growth": growth,
            "lookups_ms": covered_ns / 1e6,
            "waited_ms": float(waited_ns) / 1e6,
            "demand_ratio": demand,
        },
        events=tuple(case.arrival(int(place)) for place in victims[:3]),
        also=("SCHED_QUEUE",) if case.excess_ns(Cause(Component.BUDGET, None)) > 0 else (),
    )


def _causes(case: Case) -> list[Cause]:
    """Those of the causes that lookups can explain and that somebody met."""
    return [cause for cause in case.causes if cause.tier is None and cause.component in _EXPLAINED]


def _mean_ns(case: Case, places: IntArray) -> float:
    """The mean length of the lookups of some requests, on the ranks that the tail waited on."""
    lookups = case.recording.columns.lookups
    here = victim_streams(case)[case.recording.columns.requests.stream[lookups.request]]
    own = np.isin(lookups.request, places) & here
    return float((lookups.end_ns - lookups.start_ns)[own].mean()) if own.any() else 0.0


def _covered_ns(case: Case, victims: IntArray, *, whole: bool) -> IntArray:
    """For each victim, how long lookups of its stream ran from its arrival to the end of its own last one, or in its life."""
    lookups, requests = case.recording.columns.lookups, case.recording.columns.requests
    looked = requests.end_ns.copy() if whole else requests.arrived_ns.copy()
    if not whole:
        np.maximum.at(looked, lookups.request, lookups.end_ns)
    covered, home = np.zeros(len(victims), dtype=np.int64), requests.stream[lookups.request]
    for stream in np.unique(requests.stream[victims]).tolist():
        here = requests.stream[victims] == stream
        own, arrived_ns = victims[here], requests.arrived_ns[victims[here]]
        covered[here] = _ran_between(lookups.start_ns[home == stream], lookups.end_ns[home == stream], arrived_ns, looked[own])
    return covered


def _ran_between(start_ns: IntArray, end_ns: IntArray, from_ns: IntArray, to_ns: IntArray) -> IntArray:
    """How long any of some intervals ran between pairs of moments."""
    order = np.argsort(start_ns, kind="stable")
    starts, ends = start_ns[order], np.maximum.accumulate(end_ns[order]) if len(order) else end_ns
    starts = np.maximum(starts, np.concatenate([starts[:1], ends[:-1]]))
    until = np.concatenate([[0], np.cumsum(np.maximum(ends - starts, 0))])
    return _run_before(starts, ends, until, to_ns) - _run_before(starts, ends, until, from_ns)


def _run_before(starts: IntArray, ends: IntArray, until: IntArray, t_ns: IntArray) -> IntArray:
    """How long disjoint intervals ran before some moments."""
    place = np.searchsorted(starts, t_ns, side="right")
    last = np.maximum(place - 1, 0)
    if not len(starts):
        return np.zeros(len(t_ns), dtype=np.int64)
    inside = np.clip(np.minimum(ends[last], t_ns) - starts[last], 0, None)
    return np.asarray(np.where(place > 0, until[last] + inside, 0), dtype=np.int64)


DETECTOR: Final = Detector(
    code="LOOKUP_BOUND",
    components=frozenset(_EXPLAINED),
    action="cache lookups, or look up fewer blocks at once",
    find=find,
)
