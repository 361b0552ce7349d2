"""Requests as a population: one row a request, one column a component, ready for tails and resamples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kvtrail_collector.facts import RequestFacts
from kvtrail_collector.facts_rows import BoolArray, IntArray
from kvtrail_collector.ledger import ledger_of
from kvtrail_collector.ledger_parts import ORDER, Component


class Cause(NamedTuple):
    """What can make requests slow: a component, in a tier where it has one."""

    component: Component
    tier: str | None


@dataclass(frozen=True, slots=True)
class Population:
    """Requests in the order of arrival. `amounts_ns[i, k]` is what request i spent on cause k; rows add up to latency.

    Unfinished and cancelled requests are in it with their time so far, marked censored. `strata` numbers what arrives
    with a request; while there is one stratum, all are 0.
    """

    facts: tuple[RequestFacts, ...]
    causes: tuple[Cause, ...]
    arrived_ns: IntArray
    latency_ns: IntArray
    censored: BoolArray
    amounts_ns: IntArray
    strata: IntArray

    def __len__(self) -> int:
        """How many requests."""
        return len(self.arrived_ns)

    def arrived_in(self, start_ns: int, end_ns: int) -> "Population":
        """Those that arrived in [start, end)."""
        low, high = np.searchsorted(self.arrived_ns, [start_ns, end_ns]).tolist()
        own = slice(low, high)
        return Population(
            facts=self.facts[own],
            causes=self.causes,
            arrived_ns=self.arrived_ns[own],
            latency_ns=self.latency_ns[own],
            censored=self.censored[own],
            amounts_ns=self.amounts_ns[own],
            strata=self.strata[own],
        )


def population_of(requests: Sequence[RequestFacts]) -> Population:
    """The ledgers of requests, which are given in the order of arrival. About 0.1 ms a request."""
    amounts = [_by_cause(facts) for facts in requests]
    causes = sorted(
        {cause for amount in amounts for cause in amount}, key=lambda cause: (ORDER[cause.component], cause.tier or "")
    )
    place = {cause: column for column, cause in enumerate(causes)}
    table = np.zeros((len(requests), len(causes)), dtype=np.int64)
    for row, amount in enumerate(amounts):
        for cause, ns in amount.items():
            table[row, place[cause]] = ns
    return Population(
        facts=tuple(requests),
        causes=tuple(causes),
        arrived_ns=np.array([facts.arrived_ns for facts in requests], dtype=np.int64),
        latency_ns=table.sum(axis=1, dtype=np.int64),
        censored=np.array([facts.censored for facts in requests], dtype=np.bool_),
        amounts_ns=table,
        strata=np.zeros(len(requests), dtype=np.int64),
    )


def _by_cause(facts: RequestFacts) -> dict[Cause, int]:
    """The parts of one request by cause, reasons added up."""
    found: dict[Cause, int] = {}
    for part in ledger_of(facts).parts:
        cause = Cause(part.component, part.tier)
        found[cause] = found.get(cause, 0) + part.ns
    return found


def _place(cause: Cause) -> tuple[int, str]:
    """Where a cause stands in tables."""
    return ORDER[cause.component], cause.tier or ""
