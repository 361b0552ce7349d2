"""What became of blocks that are gone: which tier lost them last, and the id of the event that says so."""

from collections import OrderedDict
from dataclasses import dataclass

from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, EventId, NamespaceId
from kvtrail_schema.reasons import MissReason


@dataclass(frozen=True, slots=True)
class Loss:
    """The end of a block's copy in a tier."""

    tier: Tier
    event: EventId
    reason: MissReason | None = None
    """Why a lookup misses it, where that is not simply that the tier lost it."""


class History:
    """The last loss of each block, for the most recent `limit` blocks. The engine's thread only."""

    def __init__(self, limit: int = 65_536) -> None:
        self._limit = limit
        self._losses: OrderedDict[BlockId, Loss] = OrderedDict()
        self._invalidated: OrderedDict[tuple[NamespaceId, int], Loss] = OrderedDict()

    def note(self, block: BlockId, loss: Loss) -> None:
        """Remember a loss; the oldest one is forgotten past the limit."""
        self._losses[block] = loss
        self._losses.move_to_end(block)
        if len(self._losses) > self._limit:
            self._losses.popitem(last=False)

    def last(self, block: BlockId) -> Loss | None:
        """The block's last loss, if it had one that is remembered."""
        return self._losses.get(block)

    def note_invalidated(self, ns: NamespaceId, content: int, loss: Loss) -> None:
        """Remember an invalidation by what the block held, since its successor has another id."""
        self._invalidated[ns, content] = loss
        self._invalidated.move_to_end((ns, content))
        if len(self._invalidated) > self._limit:
            self._invalidated.popitem(last=False)

    def invalidated(self, ns: NamespaceId, content: int) -> Loss | None:
        """The last invalidation of a namespace's block with this content, if it is remembered."""
        return self._invalidated.get((ns, content))
