"""What rules can look at: each measure's name, how it is gathered, and what it means. Docs are made from this file."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class Gathered(Enum):
    """How the observations of a measure become one figure."""

    COUNT = "how many in the window"
    SHARE = "what share in the window"
    SPREAD = "the P95 in the window over the median of another"
    LATEST = "the last sample; of several ranks or tenants the worst"
    STREAK = "how many in a row, without one that went well"
    ASKED = "asked of the books when rules are looked at"


class Measure(NamedTuple):
    """One measure."""

    gathered: Gathered
    meaning: str
    held_back: str = ""
    """The subject that counts what an engine does without because it was asked to; empty: no action hides this figure."""


HELD_BACK: Final = "prefetch_held_back"
"""The subject under which fetches are counted that an action keeps back; no rule looks at it alone."""

MEASURES: Final[dict[str, Measure]] = {
    "restore_over_recompute": Measure(
        Gathered.SPREAD, "P95 of what requests waited for a restore, over the median estimate of recompute"
    ),
    "thrash_share": Measure(Gathered.SHARE, "prompt tokens computed again because their blocks were evicted, of all computed"),
    "prefetch_waste_share": Measure(
        Gathered.SHARE, "prefetched blocks that were wasted, of those used or wasted", held_back=HELD_BACK
    ),
    "prefetch_unused_share": Measure(
        Gathered.SHARE, "prefetched blocks that were wasted or called off, of those and the used ones", held_back=HELD_BACK
    ),
    "gpu_idle_pct": Measure(Gathered.LATEST, "the time in percent in which the device did nothing"),
    "checksum_mismatches": Measure(Gathered.COUNT, "loads whose bytes were not what was stored"),
    "cross_namespace_hits": Measure(Gathered.COUNT, "hits on blocks of another namespace than the request's"),
    "reads_after_invalidate": Measure(Gathered.COUNT, "reads of a copy that was invalidated and not made anew"),
    "connector_error_streak": Measure(Gathered.STREAK, "ops of a tier that failed in a row: timeout, io, lost, no_space"),
    "free_bytes": Measure(Gathered.LATEST, "free bytes of a tier; of nvme, of its file system"),
    "free_share": Measure(Gathered.LATEST, "free of a tier's capacity, evictable blocks among the free"),
    "pinned_bytes": Measure(Gathered.LATEST, "bytes of a tier that are referenced or pinned"),
    "queue_depth": Measure(Gathered.LATEST, "ops that wait in a tier's queue"),
    "in_flight": Measure(Gathered.LATEST, "ops of a tier in service"),
    "pending_prefetch": Measure(Gathered.LATEST, "prefetched blocks on their way to a tier"),
    "orphans": Measure(Gathered.LATEST, "stored records of a tier that nobody owns"),
    "connections": Measure(Gathered.LATEST, "open connections of a tier"),
    "tenant_quota_share": Measure(Gathered.LATEST, "what the fullest tenant holds of its quota in a tier"),
    "unaccounted_events": Measure(Gathered.ASKED, "events that nobody stored and nobody declared as dropped"),
    "dropped_events": Measure(Gathered.ASKED, "events that were dropped since the engine's start, with a reason"),
    "lag_s": Measure(Gathered.ASKED, "seconds since what was stored last left its engine, while that says that it runs"),
    "stalled_actions": Measure(Gathered.ASKED, "actions that an engine was asked for, and of which no event shows the effect"),
    "verdict": Measure(Gathered.ASKED, "verdicts of a code in the last minutes; the rule names the code"),
}
"""By name. Nothing is polled from the store for those that are gathered; the books of loss and lag are in memory."""
