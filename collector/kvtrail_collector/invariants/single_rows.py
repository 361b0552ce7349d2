"""Invariants that one row alone can break: no memory, one look at the columns of few kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from kvtrail_schema.enums import Reason, Tier
from kvtrail_schema.kinds import Kind

from kvtrail_collector.invariants.found import Found, found_at
from kvtrail_collector.invariants.rows import ABSENT, Ints, Rows

_NS_A_MS: Final = 1_000_000
_LARGEST_KIND: Final = max(Kind).value
_FOUND: Final = ("tokens_gpu", "tokens_host", "tokens_nvme", "tokens_remote")
Settings = Mapping[str, Mapping[str, float]]


class SingleRows:
    """Sure always: it remembers nothing, so that nothing can be forgotten."""

    codes = (
        *("CAP_EXCEEDED", "PIN_FAILED", "CLOCK_STEP", "LEASE_EXPIRED", "SCHEMA_UNKNOWN"),
        *("ACCOUNTING_INVALID", "MALFORMED"),
    )
    is_sure = True

    def __init__(self, settings: Settings) -> None:
        self._times_the_cap = settings["CAP_EXCEEDED"]["times"]
        self._step_ns = settings["CLOCK_STEP"]["step_ms"] * _NS_A_MS

    def look(self, rows: Rows) -> list[Found]:
        """All that is wrong with single rows."""
        found = [*self._caps(rows), *self._clocks(rows), *_refused(rows), *_errors(rows), *_unknown(rows)]
        return [*found, *_lookups(rows), *_counters(rows), *_steps(rows), *_backwards(rows)]

    def _caps(self, rows: Rows) -> list[Found]:
        """Tiers, or shares of them, that hold more than they may."""
        samples = rows.of(Kind.CAPACITY_SAMPLED)
        used, cap = rows.numbers_at("used_bytes", samples), rows.numbers_at("capacity_bytes", samples)
        bad = samples[(cap > 0) & (used > self._times_the_cap * cap)]
        return found_at("CAP_EXCEEDED", rows, bad, rows.numbers_at("tier", bad))

    def _clocks(self, rows: Rows) -> list[Found]:
        """Steps of the wall clock that are large enough."""
        steps = rows.of(Kind.CLOCK_STEPPED)
        return (
            found_at("CLOCK_STEP", rows, steps[np.abs(rows.floats_at("value", steps)) >= self._step_ns]) if len(steps) else []
        )


def _refused(rows: Rows) -> list[Found]:
    """Loads that were refused since a lease had run out."""
    failed = rows.of(Kind.SWAP_IN_FAILED)
    bad = failed[rows.numbers_at("reason", failed) == Reason.EXPIRED]
    return found_at("LEASE_EXPIRED", rows, bad, rows.numbers_at("src", bad))


def _errors(rows: Rows) -> list[Found]:
    """Memory that could not be pinned."""
    errors = rows.of(Kind.ERROR)
    bad = errors[rows.numbers_at("reason", errors) == Reason.PIN_FAILED]
    tiers = rows.numbers_at("tier", bad)
    return found_at("PIN_FAILED", rows, bad, np.where(tiers == ABSENT, Tier.HOST.value, tiers))


def _unknown(rows: Rows) -> list[Found]:
    """Events of kinds, or with fields, that this version does not know."""
    kinds = found_at("SCHEMA_UNKNOWN", rows, np.flatnonzero(rows.kind > _LARGEST_KIND), what="an unknown kind")
    return [*kinds, *found_at("SCHEMA_UNKNOWN", rows, rows.present("extra"), what="unknown fields")]


def _lookups(rows: Rows) -> list[Found]:
    """Lookups that found more than they asked for."""
    lookups = rows.of(Kind.LOOKUP_FINISHED)
    asked = rows.numbers_at("tokens", lookups)
    bad = lookups[(asked != ABSENT) & (_sum(rows, lookups, _FOUND) > asked)]
    return found_at("ACCOUNTING_INVALID", rows, bad, what="lookups found more than they asked for")


def _counters(rows: Rows) -> list[Found]:
    """Counters below zero."""
    samples = rows.of(Kind.COUNTER_SAMPLED)
    if not len(samples):
        return []
    return found_at("ACCOUNTING_INVALID", rows, samples[rows.floats_at("value", samples) < 0], what="a counter is negative")


def _steps(rows: Rows) -> list[Found]:
    """Steps with more tokens of both sorts than tokens."""
    steps = rows.of(Kind.STEP_FINISHED)
    tokens = rows.numbers_at("tokens", steps)
    bad = steps[(tokens != ABSENT) & (_sum(rows, steps, ("prefill_tokens", "decode_tokens")) > tokens)]
    return found_at("ACCOUNTING_INVALID", rows, bad, what="a step has more prefill and decode tokens than tokens")


def _backwards(rows: Rows) -> list[Found]:
    """Ranges of dropped events that end before they begin, or are shorter than what was dropped in them."""
    drops = rows.of(Kind.EVENTS_DROPPED)
    if not len(drops):
        return []
    first, last, count = (rows.numbers_at(name, drops) for name in ("first_seq", "last_seq", "count"))
    known = (first != ABSENT) & (last != ABSENT)
    bad = drops[known & ((last < first) | ((count != ABSENT) & (count > last - first + 1)))]
    return found_at("MALFORMED", rows, bad, what="a range of seqs that ends before it begins")


def _sum(rows: Rows, places: Ints, columns: tuple[str, ...]) -> Ints:
    """The sum of some columns; what is absent counts as nothing."""
    return np.asarray(np.sum([np.maximum(rows.numbers_at(name, places), 0) for name in columns], axis=0), dtype=np.int64)
