"""Components by family: one colour stands for one sort of time on every chart."""

from enum import Enum
from typing import Final


class Family(Enum):
    """Sorts of time, in the order of legends; the value is what people read."""

    SCHEDULER = "scheduler wait"
    LOOKUP = "lookup"
    QUEUE = "tier queue"
    READ = "storage read"
    COPY = "copy and its overheads"
    COMPUTE = "prefill and decode"
    UNATTRIBUTED = "unattributed"


_FAMILIES: Final = {
    "sched_wait": Family.SCHEDULER,
    "lookup": Family.LOOKUP,
    "tier_queue": Family.QUEUE,
    "storage_read": Family.READ,
    "alloc": Family.COPY,
    "submit": Family.COPY,
    "copy": Family.COPY,
    "sync": Family.COPY,
    "copy_wait": Family.COPY,
    "recompute_prefill": Family.COMPUTE,
    "new_prefill": Family.COMPUTE,
    "decode_step": Family.COMPUTE,
}
_WAY: Final = "→"


def family_of(component: str) -> Family:
    """The family of a component; one that is not known here, from a newer collector, counts as unattributed."""
    return _FAMILIES.get(component.split(".", 1)[0], Family.UNATTRIBUTED)


def label_of(component: str, tier: str | None, reason: str | None = None) -> str:
    """A component as tables and axes name it: in the words of the ledger, then its tier and reason."""
    # The reason of a copy is its way, which names the tier already.
    words = (component, reason) if reason and _WAY in reason else (component, tier, reason)
    return " · ".join(word for word in words if word)
