"""What a rebuild answers; loads no database."""

import msgspec


class Rebuilt(msgspec.Struct, frozen=True):
    """Projections that were computed again from events: their rows, and how long it took."""

    events: int
    requests: int
    ops: int
    seconds: float
    device: str | None = None
    schema: int = 1
