"""The numbers of the kinds of event on the wire, and the way from a number to its class and back."""

from enum import IntEnum
from typing import Final

import msgspec

from kvtrail_schema import events
from kvtrail_schema.events import Event


class Kind(IntEnum):
    """A kind of event. Numbers are never reused; new kinds go to the end."""

    REQUEST_ARRIVED = 1
    REQUEST_WAITING = 2
    REQUEST_ADMITTED = 3
    REQUEST_PREEMPTED = 4
    REQUEST_RESUMED = 5
    REQUEST_FIRST_TOKEN = 6
    REQUEST_FINISHED = 7
    REQUEST_CANCELLED = 8
    REQUEST_REJECTED = 9
    STEP_STARTED = 10
    STEP_FINISHED = 11
    PREFILL_CHUNK = 12
    DECODE_JOINED = 13
    DECODE_LEFT = 14
    TOKENS_EMITTED = 15
    COPY_WAITED = 16
    LOOKUP_FINISHED = 17
    PREFIX_HIT = 18
    PREFIX_MISS = 19
    BLOCK_CREATED = 20
    ATTENTION_READ = 21
    BLOCK_PINNED = 22
    BLOCK_UNPINNED = 23
    EVICTED = 24
    TIER_CLEARED = 25
    INVALIDATION_REQUESTED = 26
    INVALIDATED = 27
    SWAP_OUT_QUEUED = 28
    SWAP_OUT_STARTED = 29
    SWAP_OUT_WRITTEN = 30
    SWAP_OUT_FAILED = 31
    SWAP_OUT_SKIPPED = 32
    SWAP_IN_QUEUED = 33
    SWAP_IN_STARTED = 34
    SWAP_IN_LOADED = 35
    SWAP_IN_FAILED = 36
    PREFETCH_ISSUED = 37
    PREFETCH_COMPLETED = 38
    PREFETCH_READY = 39
    PREFETCH_USED = 40
    PREFETCH_WASTED = 41
    PREFETCH_DEADLINE_MISSED = 42
    PREFETCH_SKIPPED = 43
    PREFETCH_CANCELLED = 44
    RECOMPUTE_CHOSEN = 45
    RESTORE_CHOSEN = 46
    CAPACITY_SAMPLED = 47
    GPU_SAMPLED = 48
    BACKPRESSURE_ON = 49
    BACKPRESSURE_OFF = 50
    ADMISSION_LIMITED = 51
    LEASE_GRANTED = 52
    TRANSFER_ACKED = 53
    ORPHAN_FOUND = 54
    ORPHAN_REMOVED = 55
    ERROR = 56
    TIER_DECLARED = 57
    NAMESPACE_DECLARED = 58
    MANIFEST_DECLARED = 59
    COUNTER_SAMPLED = 60
    DEGRADE_REQUESTED = 61
    DEGRADE_APPLIED = 62
    DEGRADE_CLEARED = 63
    FAULT_INJECTED = 64
    FAULT_CLEARED = 65
    AGENT_STARTED = 66
    AGENT_HEARTBEAT = 67
    AGENT_STOPPED = 68
    EVENTS_DROPPED = 69
    CLOCK_STEPPED = 70


def _class_of(kind: Kind) -> type[Event]:
    """The class of a kind, by the rule that `swap_in_loaded` is `SwapInLoaded`."""
    found: type[Event] = getattr(events, "".join(word.capitalize() for word in kind.name.split("_")))
    return found


EVENT_OF: Final[dict[Kind, type[Event]]] = {kind: _class_of(kind) for kind in Kind}
KIND_OF: Final[dict[type[Event], Kind]] = {cls: kind for kind, cls in EVENT_OF.items()}
FIELDS_OF: Final[dict[Kind, tuple[str, ...]]] = {
    kind: tuple(f.name for f in msgspec.structs.fields(cls) if f.name not in {"seq", "t_ns"}) for kind, cls in EVENT_OF.items()
}
REQUIRED_OF: Final[dict[Kind, frozenset[str]]] = {
    kind: frozenset(f.name for f in msgspec.structs.fields(cls) if f.required) for kind, cls in EVENT_OF.items()
}


def kind_of(event: Event) -> Kind:
    """The wire number of an event's class."""
    return KIND_OF[type(event)]
