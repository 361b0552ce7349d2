"""What the balance of streams answers, in the shapes that the API and the command line publish; loads no database."""

from typing import Final

import msgspec
from kvtrail_schema.enums import Stage
from kvtrail_schema.reasons import DropReason

_EXPIRY: Final = (Stage.COLLECTOR.name.lower(), DropReason.RETENTION.name.lower())


class DropCount(msgspec.Struct, frozen=True):
    """How many seqs a stage dropped for a reason."""

    stage: str
    reason: str
    count: int

    @property
    def is_expiry(self) -> bool:
        """Whether the collector's own retention let events go: they had been stored, and nobody lost them."""
        return (self.stage, self.reason) == _EXPIRY


class StreamLoss(msgspec.Struct, frozen=True):
    """The balance of one stream. `gaps` are the seqs that nobody explains; `unaccounted` is their number.

    `lost_before_stored` is how many of the dropped and unaccounted lie before the first event that retention left.
    """

    engine: str
    epoch: int
    rank: int
    produced: int
    stored: int
    dropped: tuple[DropCount, ...]
    in_flight: int
    unaccounted: int
    gaps: tuple[tuple[int, int], ...]
    lost_before_stored: int = 0

    @property
    def expired(self) -> int:
        """How many events retention let go of."""
        return sum(drop.count for drop in self.dropped if drop.is_expiry)

    @property
    def lost(self) -> int:
        """How many events were produced, never stored, and are not on their way."""
        return self.unaccounted + sum(drop.count for drop in self.dropped if not drop.is_expiry)


class Loss(msgspec.Struct, frozen=True):
    """The balance of all streams; `balanced` only if no stream has a seq that is unaccounted for."""

    streams: tuple[StreamLoss, ...]
    balanced: bool
    device: str | None = None
    schema: int = 1
