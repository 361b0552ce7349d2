"""Requests as a population: one row a request, one column a component, ready for tails and resamples."""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from kvtrail_collector.facts_build import Recording
from kvtrail_collector.facts_names import models, namespaces_of, tenants
from kvtrail_collector.facts_rows import BoolArray, IntArray
from kvtrail_collector.gap_ledgers import gap_ledgers
from kvtrail_collector.ledger_codes import cause_places, label_of
from kvtrail_collector.ledger_columns import ledgers_of
from kvtrail_collector.ledger_paint import Amounts
from kvtrail_collector.ledger_parts import Component


class Cause(NamedTuple):
    """What can make requests slow: a component, in a tier where it has one."""

    component: Component
    tier: str | None


@dataclass(frozen=True, slots=True)
class Population:
    """Requests in the order of arrival. `amounts_ns[i, k]` is what request i spent on cause k; rows add up to latency.

    Unfinished and cancelled requests are in it with their time so far, marked censored. `prompt_tokens`, `model` and
    `tenant` arrive with a request (-1: not known); models and tenants are numbers whose names the maker knows. `place`
    is where a request stands in what the population was made from: in a recording, the place among its requests.
    """

    causes: tuple[Cause, ...]
    arrived_ns: IntArray
    latency_ns: IntArray
    censored: BoolArray
    amounts_ns: IntArray
    prompt_tokens: IntArray
    model: IntArray
    tenant: IntArray
    place: IntArray

    def __len__(self) -> int:
        """How many requests."""
        return len(self.arrived_ns)

    def arrived_in(self, start_ns: int, end_ns: int) -> "Population":
        """Those that arrived in [start, end)."""
        low, high = np.searchsorted(self.arrived_ns, [start_ns, end_ns]).tolist()
        columns = {field.name: getattr(self, field.name)[low:high] for field in fields(self) if field.name != "causes"}
        return Population(causes=self.causes, **columns)


def population_of(recording: Recording) -> Population:
    """The requests of a recording. 10 to 20 µs a request."""
    ledgers, requests = ledgers_of(recording.columns), recording.columns.requests
    causes, table = by_cause(ledgers.parts)
    known = namespaces_of(recording.rows)
    return Population(
        causes=causes,
        arrived_ns=requests.arrived_ns,
        latency_ns=requests.end_ns - requests.arrived_ns,
        censored=requests.censored,
        amounts_ns=table,
        prompt_tokens=requests.tokens,
        model=models(requests.ns, known).numbers,
        tenant=tenants(requests.ns, known).numbers,
        place=np.arange(len(requests)),
    )


def gap_population(recording: Recording) -> Population:
    """The gaps between tokens of a recording, by the time of the token that each begins with (LEDGER §5, step 7).

    About a microsecond and a hundred bytes a gap. What arrives with a request stands on each of its gaps.
    """
    ledgers, requests = gap_ledgers(recording), recording.columns.requests
    causes, table = by_cause(ledgers.parts)
    known, order = namespaces_of(recording.rows), np.argsort(ledgers.start_ns, kind="stable")
    request = ledgers.gaps.request[order]
    return Population(
        causes=causes,
        arrived_ns=ledgers.start_ns[order],
        latency_ns=(ledgers.end_ns - ledgers.start_ns)[order],
        censored=np.zeros(len(order), dtype=np.bool_),
        amounts_ns=table[order],
        prompt_tokens=requests.tokens[request],
        model=models(requests.ns, known).numbers[request],
        tenant=tenants(requests.ns, known).numbers[request],
        place=request.astype(np.int64),
    )


def by_cause(amounts: Amounts) -> tuple[tuple[Cause, ...], IntArray]:
    """Amounts by cause, reasons added up; the causes are in the order of tables, as labels are."""
    places = cause_places(amounts.codes).tolist()
    kept = list(dict.fromkeys(places))
    table = np.zeros((len(amounts.ns), len(kept)), dtype=np.int64)
    for column, place in enumerate(places):
        table[:, kept.index(place)] += amounts.ns[:, column]
    return tuple(cause_of(place) for place in kept), table


def cause_of(code: int) -> Cause:
    """The cause that a label's code belongs to."""
    label = label_of(code)
    return Cause(label.component, label.tier)
