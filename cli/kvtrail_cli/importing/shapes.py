"""What `kvtrail import` answers (OUTPUTS)."""

import msgspec


class ImportedStream(msgspec.Struct, frozen=True):
    """What came into one stream; `lost` is what the source's own numbers say never came."""

    engine: str
    epoch: int
    rank: int
    events: int
    lost: int


class ImportProblem(msgspec.Struct, frozen=True):
    """One thing that could not be read: where, what, and what to do."""

    where: str
    what: str
    do: str


class ImportMissing(msgspec.Struct, frozen=True):
    """What the format cannot tell, and what follows from that."""

    what: str
    so_what: str


class Imported(msgspec.Struct, frozen=True):
    """What `kvtrail import` answers.

    `seen` counts the source's own events by its names, `events` the rows that they became. `quarantined` things could not be
    read, the first of them are `problems`. `unknown` was kept, `left_out` was not, on purpose.
    """

    format: str
    files: tuple[str, ...]
    to: str
    records: int
    seen: dict[str, int]
    events: int
    streams: tuple[ImportedStream, ...]
    unknown: dict[str, int]
    remarks: dict[str, int]
    quarantined: int
    problems: tuple[ImportProblem, ...]
    missing: tuple[ImportMissing, ...]
    left_out: tuple[str, ...]
    schema: int = 1
