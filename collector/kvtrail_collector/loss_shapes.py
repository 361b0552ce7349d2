"""What the balance of streams answers, in the shapes that the API and the command line publish; loads no database."""

import msgspec


class DropCount(msgspec.Struct, frozen=True):
    """How many seqs a stage dropped for a reason."""

    stage: str
    reason: str
    count: int


class StreamLoss(msgspec.Struct, frozen=True):
    """The balance of one stream. `gaps` are the seqs that nobody explains; `unaccounted` is their number."""

    engine: str
    epoch: int
    rank: int
    produced: int
    stored: int
    dropped: tuple[DropCount, ...]
    in_flight: int
    unaccounted: int
    gaps: tuple[tuple[int, int], ...]


class Loss(msgspec.Struct, frozen=True):
    """The balance of all streams; `balanced` only if no stream has a seq that is unaccounted for."""

    streams: tuple[StreamLoss, ...]
    balanced: bool
    device: str | None = None
    schema: int = 1
