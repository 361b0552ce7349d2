"""The books of an engine's streams as pages tell them: what expired by the operator's own wish is no loss."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from kvtrail_dashboards.answers import DropCount, Loss, StreamLoss

_EXPIRY: Final = ("collector", "retention")


@dataclass(frozen=True, slots=True)
class Books:
    """The sums of some streams; `dropped` is what was lost on the way, `expired` what retention let go of later.

    `lost_before_stored` is how much of what was lost lies before all that retention left.
    """

    produced: int
    stored: int
    dropped: int
    expired: int
    in_flight: int
    unaccounted: int
    lost_before_stored: int = 0

    @property
    def kept_share(self) -> float | None:
        """Of what arrived and may still be there, the share that is stored; None where there is nothing of the kind."""
        wanted = self.produced - self.in_flight - self.expired - self.lost_before_stored
        return min(self.stored / wanted, 1.0) if wanted > 0 else None


def books_of(streams: Iterable[StreamLoss]) -> Books:
    """The sums of streams."""
    own = tuple(streams)
    drops = [drop for stream in own for drop in stream.dropped]
    expired = sum(drop.count for drop in drops if is_expiry(drop))
    return Books(
        produced=sum(one.produced for one in own),
        stored=sum(one.stored for one in own),
        dropped=sum(drop.count for drop in drops) - expired,
        expired=expired,
        in_flight=sum(one.in_flight for one in own),
        unaccounted=sum(one.unaccounted for one in own),
        lost_before_stored=sum(one.lost_before_stored for one in own),
    )


def is_expiry(drop: DropCount) -> bool:
    """Whether the collector's own retention let events go: they had been stored, and nobody lost them."""
    return (drop.stage, drop.reason) == _EXPIRY


def of_engine(loss: Loss, engine: str | None, rank: int | None = None) -> tuple[StreamLoss, ...]:
    """The streams of one engine, and of one of its ranks; of all where none is named."""
    return tuple(one for one in loss.streams if engine in {None, one.engine} and rank in {None, one.rank})


def of_rank(loss: Loss, rank: int | None) -> Loss:
    """The balance of one rank's streams alone; of all where none is named."""
    streams = of_engine(loss, None, rank)
    return msgspec.structs.replace(loss, streams=streams, balanced=not any(one.unaccounted for one in streams))
