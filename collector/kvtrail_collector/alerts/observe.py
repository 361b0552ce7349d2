"""From rows to observations: what each measure is made of. Used by the thread `kvtrail-alerts` alone; milliseconds a commit."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

import numpy as np
from kvtrail_schema.enums import Tier
from kvtrail_schema.kinds import Kind
from kvtrail_schema.reasons import (
    PrefetchCancelReason,
    PrefetchSkipReason,
    PrefillReason,
    SwapInFailReason,
    SwapOutFailReason,
)

from kvtrail_collector.alerts.batch import NONE, Ints, Rows, tier_name
from kvtrail_collector.alerts.measures import HELD_BACK
from kvtrail_collector.alerts.windows import Sample, Subject, Windows

RECOMPUTE_BASE: Final = "recompute_estimate"
"""The subject under which estimates of recompute are kept; no rule looks at it alone."""

_MOST_REMEMBERED: Final = 65_536
_TRANSFER_ENDS: Final = (Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN, Kind.SWAP_IN_FAILED, Kind.SWAP_OUT_FAILED)
_CONNECTOR_ERRORS: Final = np.array(
    [
        *(SwapInFailReason.TIMEOUT.value, SwapInFailReason.IO.value, SwapInFailReason.LOST.value),
        SwapOutFailReason.NO_SPACE.value,
    ]
)
"""Failures that say that the other side does not work; the others say something of a block, or nothing."""

_NOT_ITS_FAULT: Final = np.array([PrefetchCancelReason.DEGRADED.value, PrefetchCancelReason.SHUTDOWN.value])
"""Why prefetches are called off that might have been used."""

_LEVELS: Final = {
    "pinned_bytes": "pinned_bytes",
    "depth": "queue_depth",
    "in_flight": "in_flight",
    "pending_prefetch": "pending_prefetch",
    "orphans": "orphans",
    "connections": "connections",
    "free_bytes": "free_bytes",
}


class _Streak(NamedTuple):
    """Ops of one rank that failed in a row, and the last of them, whose rows may be spread over commits."""

    ops: int = 0
    last_op: int = NONE


class Observer:
    """Feeds windows with rows. What it remembers beside them (whose request, which copies are gone) is bounded."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._streaks: dict[tuple[Subject, int], _Streak] = {}
        self._ns_of: OrderedDict[tuple[str, int, int], int] = OrderedDict()
        self._gone: OrderedDict[tuple[str, int, int, int], None] = OrderedDict()

    def observe(self, rows: Rows, now_s: int) -> None:
        """Take in the rows of one stream."""
        self._restores(rows, now_s)
        self._shares(rows, now_s)
        self._unused(rows, now_s)
        self._failures(rows, now_s)
        self._levels(rows, now_s)
        self._foreign_hits(rows, now_s)
        self._reads_of_gone(rows, now_s)

    def _subject(self, rows: Rows, measure: str, tier: str = "") -> Subject:
        """A measure of an engine."""
        return Subject(rows.origin.engine, measure, tier)

    def _restores(self, rows: Rows, now_s: int) -> None:
        """How long requests waited for loads, and what computing would have taken."""
        waited = rows.of(Kind.COPY_WAITED)
        subject = self._subject(rows, "restore_over_recompute")
        self._windows.add_spread(subject, rows.second[waited], rows.ints("wait_ns")[waited], now_s)
        chosen = rows.of(Kind.RESTORE_CHOSEN, Kind.RECOMPUTE_CHOSEN)
        chosen = chosen[rows.ints("recompute_estimate_ns")[chosen] > 0]
        base = self._subject(rows, RECOMPUTE_BASE)
        self._windows.add_spread(base, rows.second[chosen], rows.ints("recompute_estimate_ns")[chosen], now_s)

    def _shares(self, rows: Rows, now_s: int) -> None:
        """Prefetches that were wasted, and tokens that were computed again."""
        ended = rows.of(Kind.PREFETCH_USED, Kind.PREFETCH_WASTED)
        wasted = (rows.kind[ended] == Kind.PREFETCH_WASTED).astype(float)
        subject = self._subject(rows, "prefetch_waste_share")
        self._windows.add_counts(subject, rows.second[ended], now_s, wasted, np.ones(len(ended)))
        chunks = rows.of(Kind.PREFILL_CHUNK)
        tokens = rows.ints("tokens")[chunks].astype(float)
        again = tokens * (rows.ints("reason")[chunks] == PrefillReason.EVICTED.value)
        self._windows.add_counts(self._subject(rows, "thrash_share"), rows.second[chunks], now_s, again, tokens)

    def _unused(self, rows: Rows, now_s: int) -> None:
        """Prefetches that came to nothing, read or not; and those that an action keeps back, which show that it hides them."""
        reasons = rows.ints("reason")
        ended = rows.of(Kind.PREFETCH_USED, Kind.PREFETCH_WASTED, Kind.PREFETCH_CANCELLED)
        called_off = rows.kind[ended] == Kind.PREFETCH_CANCELLED
        ended = ended[~(called_off & np.isin(reasons[ended], _NOT_ITS_FAULT))]
        unused = (rows.kind[ended] != Kind.PREFETCH_USED).astype(float)
        subject = self._subject(rows, "prefetch_unused_share")
        self._windows.add_counts(subject, rows.second[ended], now_s, unused, np.ones(len(ended)))
        skipped = rows.of(Kind.PREFETCH_SKIPPED)
        kept = skipped[reasons[skipped] == PrefetchSkipReason.DEGRADED.value]
        self._windows.add_counts(self._subject(rows, HELD_BACK), rows.second[kept], now_s, np.ones(len(kept)))

    def _failures(self, rows: Rows, now_s: int) -> None:
        """Checksums that did not hold, and failures one after another; the op's slower end is whose they are."""
        ends, reasons = rows.of(*_TRANSFER_ENDS), rows.ints("reason")
        slower = np.maximum(rows.ints("src"), rows.ints("dst"))
        for tier in np.unique(slower[ends]).tolist():
            own = ends[slower[ends] == tier]
            failed = np.isin(rows.kind[own], [Kind.SWAP_IN_FAILED.value, Kind.SWAP_OUT_FAILED.value])
            bad = own[failed & (reasons[own] == SwapInFailReason.CHECKSUM.value)]
            subject = self._subject(rows, "checksum_mismatches", tier_name(tier))
            self._windows.add_counts(subject, rows.second[bad], now_s, np.ones(len(bad)))
            self._streak(rows, own[~failed | np.isin(reasons[own], _CONNECTOR_ERRORS)], tier, now_s)

    def _streak(self, rows: Rows, ends: Ints, tier: int, now_s: int) -> None:
        """Go on counting ops where the rows before left off; one that went well begins anew. An op has a row a block."""
        if not ends.size:
            return
        subject = self._subject(rows, "connector_error_streak", tier_name(tier))
        well = np.flatnonzero(np.isin(rows.kind[ends], [Kind.SWAP_IN_LOADED.value, Kind.SWAP_OUT_WRITTEN.value]))
        rank, ops = rows.origin.rank, rows.ints("op")[ends]
        before = _Streak() if well.size else self._streaks.get((subject, rank), _Streak())
        failed = ops[int(well[-1]) + 1 :] if well.size else ops
        more = np.unique(failed[failed != before.last_op]).size
        streak = _Streak(before.ops + int(more), int(failed[-1]) if failed.size else NONE)
        self._streaks.pop((subject, rank), None)
        self._streaks[subject, rank] = streak
        if len(self._streaks) > _MOST_REMEMBERED:
            del self._streaks[next(iter(self._streaks))]
        second = min(int(rows.second[ends[-1]]), now_s)
        self._windows.set_latest(subject, (rank, 0), Sample(second, float(streak.ops)))

    def _levels(self, rows: Rows, now_s: int) -> None:
        """The last samples of tiers and devices."""
        for place in rows.of(Kind.CAPACITY_SAMPLED).tolist():
            self._capacity(rows, place, now_s)
        idle = rows.floats("idle_pct")
        for place in rows.of(Kind.GPU_SAMPLED).tolist():
            if not np.isnan(idle[place]):
                part = (rows.origin.rank, int(rows.ints("device")[place]))
                sample = Sample(min(int(rows.second[place]), now_s), float(idle[place]))
                self._windows.set_latest(self._subject(rows, "gpu_idle_pct"), part, sample)

    def _capacity(self, rows: Rows, place: int, now_s: int) -> None:
        """One sample of a tier, or of a tenant's part of it."""
        value = {
            name: int(rows.ints(name)[place]) for name in ("ns", "capacity_bytes", "used_bytes", "evictable_bytes", *_LEVELS)
        }
        tier, second = tier_name(int(rows.ints("tier")[place])), min(int(rows.second[place]), now_s)
        capacity, used = value["capacity_bytes"], value["used_bytes"]
        levels: dict[str, float] = {}
        if value["ns"] != NONE:
            levels = {"tenant_quota_share": used / capacity} if capacity > 0 and used != NONE else {}
        else:
            levels = {measure: float(value[name]) for name, measure in _LEVELS.items() if value[name] != NONE}
            if capacity > 0 and used != NONE:
                levels["free_share"] = (capacity - used + max(value["evictable_bytes"], 0)) / capacity
        for measure, level in levels.items():
            part = (rows.origin.rank, value["ns"])
            self._windows.set_latest(self._subject(rows, measure, tier), part, Sample(second, level))

    def _foreign_hits(self, rows: Rows, now_s: int) -> None:
        """Hits on blocks of another namespace than the one that the request came with."""
        where, ns, req = (rows.origin.engine, rows.origin.rank), rows.ints("ns"), rows.ints("req")
        for place in rows.of(Kind.REQUEST_ARRIVED).tolist():
            if ns[place] != NONE:
                self._ns_of[*where, int(req[place])] = int(ns[place])
        while len(self._ns_of) > _MOST_REMEMBERED:
            self._ns_of.popitem(last=False)
        hits = rows.of(Kind.PREFIX_HIT)
        hits = hits[ns[hits] != NONE]
        pairs, first = np.unique(np.stack([req[hits], ns[hits]]), axis=1, return_index=True)
        known = [self._ns_of.get((*where, own), found) for own, found in pairs.T.tolist()]
        foreign = hits[first[pairs[1] != np.array(known, dtype=np.int64)]]
        subject = self._subject(rows, "cross_namespace_hits")
        self._windows.add_counts(subject, rows.second[foreign], now_s, np.ones(len(foreign)))

    def _reads_of_gone(self, rows: Rows, now_s: int) -> None:
        """Reads of a copy that an invalidation took and that nothing made anew; costs nothing while nothing was invalidated."""
        kinds = (Kind.INVALIDATED, Kind.ATTENTION_READ, Kind.BLOCK_CREATED, Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN)
        places = rows.of(*kinds) if self._gone or rows.of(Kind.INVALIDATED).size else rows.of()
        block, tier = rows.ints("block"), np.where(rows.ints("tier") == NONE, rows.ints("dst"), rows.ints("tier"))
        reads: list[int] = []
        for place in places.tolist():
            copy = (rows.origin.engine, rows.origin.rank, int(block[place]), int(tier[place]))
            if rows.kind[place] == Kind.INVALIDATED:
                self._gone[copy] = None
            elif rows.kind[place] != Kind.ATTENTION_READ:
                self._gone.pop(copy, None)
            elif copy in self._gone:
                reads.append(place)
        while len(self._gone) > _MOST_REMEMBERED:
            self._gone.popitem(last=False)
        found = np.array(reads, dtype=np.int64)
        subject = self._subject(rows, "reads_after_invalidate", tier_name(Tier.GPU))
        self._windows.add_counts(subject, rows.second[found], now_s, np.ones(len(found)))
