"""What a block is, wherever it lies, and what one of its places is."""

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Self

from kvtrail_schema.enums import Dtype, Tier
from kvtrail_schema.identity import BlockId, EventId, NamespaceId, Slot
from kvtrail_schema.reasons import InvalidateReason

DEFAULT_PRIORITY = 50
MAX_PRIORITY = 100


class CopyState(Enum):
    """Whether a copy's data is there."""

    LOADING = "loading"
    """An op is bringing it; nobody may read."""
    READY = "ready"
    """Readable."""


@dataclass(frozen=True, slots=True)
class Block:
    """What a block is, wherever its copies lie: identity, namespace, prefix, token range, owner, model version, type."""

    id: BlockId
    ns: NamespaceId
    parent: BlockId | None
    token_start: int
    tokens: int
    owner: str = ""
    """The tenant whose quota it counts against."""
    model_version: str = ""
    dtype: Dtype = Dtype.FP32
    content: int = 0
    """A keyed hash of the tokens up to its end, whatever the namespace, to tell why a lookup misses; 0 where not known."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a copy is kept, and how dearly; they go with it from tier to tier."""

    priority: int = DEFAULT_PRIORITY
    """From 0 to 100; the lower ones leave first."""
    priority_until_ns: int | None = None
    """From here on the priority is the usual one."""
    expires_ns: int | None = None
    """From here on nobody may read it."""

    def at(self, now_ns: int) -> Self:
        """These terms, with a priority that has run out replaced by the usual one."""
        if self.priority_until_ns is None or now_ns < self.priority_until_ns:
            return self
        return replace(self, priority=DEFAULT_PRIORITY, priority_until_ns=None)

    def is_expired(self, now_ns: int) -> bool:
        """Whether nobody may read any more."""
        return self.expires_ns is not None and now_ns >= self.expires_ns


USUAL = Terms()


@dataclass(frozen=True, slots=True)
class Doom:
    """The invalidation that a copy fell to."""

    event: EventId
    reason: InvalidateReason


@dataclass(slots=True, eq=False)
class Copy:
    """One physical place of a block."""

    block: Block
    tier: Tier
    slot: Slot
    state: CopyState
    used_ns: int
    refs: int = 0
    terms: Terms = field(default=USUAL)
    doom: Doom | None = None
    """Set once it was invalidated: it is in no index any more, and leaves its slot with its last reference."""

    def replica(self, tier: Tier, slot: Slot, now_ns: int) -> "Copy":
        """A place that will hold the same block on the same terms, once an op has brought it."""
        return Copy(self.block, tier, slot, CopyState.LOADING, now_ns, terms=self.terms)
