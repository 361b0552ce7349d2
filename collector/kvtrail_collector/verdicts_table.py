"""From components to codes, and which code says more than which: the tables of LEDGER §6, as data.

A code follows from the component that grew. Where a detector knows the mechanism, the detector decides; a component that no
detector tests gives the code of this table. Where two codes would explain the same nanoseconds, the more specific one stands
and lists the other under `also`.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kvtrail_collector.ledger_parts import Component


class Code(NamedTuple):
    """A code that a component stands for, and what helps."""

    name: str
    action: str


_CAPACITY: Final = Code("CAPACITY_CLIFF", "lower the number of requests at once, or give the pool more room")
_SLOW: Final = Code("TIER_SLOW", "recompute instead of reading from this tier")
_UNNOTICED: Final = Code("PREFETCH_READY_DELAY", "look for completed loads in every step")
_SCHED: Final = Code("SCHED_QUEUE", "lower the limit for long prompts, or the share of a step that one request may take")
_COMPUTE: Final = Code("COMPUTE_INTERFERENCE", "cut prompts into smaller chunks, so that a step stays short")

CODE_OF: Final[Mapping[Component, Code]] = {
    Component.TIER_QUEUE: Code("TIER_QUEUE", "lower the rate of the blamed kind of work on this tier"),
    Component.STORAGE_READ: _SLOW,
    Component.COPY: _SLOW,
    Component.SYNC: _SLOW,
    Component.ALLOC: _SLOW,
    Component.LOOKUP: Code("LOOKUP_BOUND", "cache lookups, or look up fewer blocks at once"),
    Component.SUBMIT: Code("SUBMIT_BOUND", "submit transfers in batches, or after the step is launched"),
    Component.BUDGET: _SCHED,
    Component.LIMIT: _SCHED,
    Component.CAPACITY: _CAPACITY,
    Component.BACKPRESSURE: _CAPACITY,
    Component.DEFERRED: _UNNOTICED,
    Component.COPY_WAIT: _UNNOTICED,
    Component.STALLED: Code("SCHED_STALL", "spread bookkeeping over steps; see what the engine does between them"),
    Component.NEW_PREFILL: _COMPUTE,
    Component.DECODE_STEP: _COMPUTE,
}
"""The code of each component; `recompute_prefill` depends on its reason, and `unattributed` has none."""

RECOMPUTE_CODE_OF: Final[Mapping[str, Code]] = {
    "evicted": Code("THRASH", "lower admission, so that what is asked for again soon stays"),
    "load_failed": Code("READ_FAILURE", "disable the tier whose reads fail"),
    "checksum": Code("CORRUPT_BLOCK", "check the medium; what was wrong has been recomputed"),
}
"""The code of recomputing, by the reason that the engine gives."""

MIX_SHIFT: Final = Code("MIX_SHIFT", "none: requests of each kind are as fast as before, there are more of the slow kinds")

GENERAL_OF: Final[Mapping[str, frozenset[str]]] = {
    "PREFETCH_WASTE": frozenset({"TIER_QUEUE"}),
    "PREFETCH_POLLUTION": frozenset({"TIER_QUEUE"}),
    "SWAP_SATURATED": frozenset({"TIER_QUEUE"}),
    "REMOTE_BANDWIDTH_DEGRADED": frozenset({"TIER_SLOW"}),
    "PREFETCH_LATE": frozenset({"TIER_SLOW", "TIER_QUEUE", "HIT_RATE_MISLEADS"}),
    "READ_FAILURE": frozenset({"TIER_SLOW", "TIER_QUEUE"}),
    "HIT_RATE_MISLEADS": frozenset({"TIER_SLOW", "TIER_QUEUE"}),
    "THRASH": frozenset({"SCHED_QUEUE", "CAPACITY_CLIFF", "MIX_SHIFT"}),
    "LOOKUP_BOUND": frozenset({"SCHED_QUEUE", "MIX_SHIFT"}),
    "SCHED_QUEUE": frozenset({"MIX_SHIFT"}),
    "PAGEABLE_COPY": frozenset({"TIER_SLOW"}),
    "NUMA_CROSS": frozenset({"TIER_SLOW"}),
    "POOL_FRAGMENTED": frozenset({"TIER_SLOW"}),
    "PREFETCH_ALLOC_FAIL": frozenset({"TIER_SLOW"}),
    "PINNED_POOL_DEADLOCK": frozenset({"TIER_SLOW"}),
    "OFFLOAD_NOT_PAYING": frozenset({"TIER_SLOW"}),
    "LEAK_BY_STUCK_LOADS": frozenset({"CAPACITY_CLIFF", "STUCK_LOAD"}),
    "PIN_LEAK": frozenset({"CAPACITY_CLIFF"}),
    "ACK_STARVED": frozenset({"CAPACITY_CLIFF"}),
    "ENGINE_STALL": frozenset({"SCHED_STALL"}),
    "FALLBACK_STALLED": frozenset({"SCHED_STALL"}),
    "PHANTOM_HIT": frozenset({"LOAD_STUCK"}),
    "STALE_REUSE": frozenset({"NAMESPACE_VIOLATION"}),
    "READ_OF_CLEARED": frozenset({"READ_AFTER_RELEASE"}),
}
"""For a code, the more general ones that it takes the place of where both fit the same events.

What else decides between two codes (whether a read went through, whether only a version differs, inside which range of seqs a
hole lies) is a condition of the detectors themselves: they do not fire both.
"""


def is_more_specific(one: str, other: str) -> bool:
    """Whether one code says more than another about the same nanoseconds."""
    return other in GENERAL_OF.get(one, frozenset())
