"""What a decoder makes of one record of another engine: rows for our streams, and what it could not read.

Loses nothing in silence: what a decoder does not know is a row of its own (`error`, reason `protocol`) or stands in `extra`;
what is broken is quarantined by itself, and the rest of its record is kept.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kvtrail_schema.events import Error, Event
from kvtrail_schema.reasons import DropReason, ErrorReason

_TEXT_CHARACTERS: Final = 1_000


class Origin(NamedTuple):
    """Where a source says that a fact comes from; becomes a stream of ours.

    `engine` is the source's own name of itself, or "". `life` tells one run of it from the next: an incarnation, or the time of
    its first record. `series` tells apart what one source gives on clocks that do not meet.
    """

    engine: str = ""
    life: int = 0
    rank: int = 0
    series: str = ""


HERE: Final = Origin()
"""The origin of a source that names none."""


class Row(NamedTuple):
    """One event that was not emitted yet, and, as JSON, the fields of it that this version does not know."""

    event: Event
    extra: str | None = None


class Lost(NamedTuple):
    """The source's own numbers say that so many of its events, at least, never came; `reason` where it says why."""

    events: int
    reason: DropReason = DropReason.FULL


class Bad(NamedTuple):
    """One thing that could not be read: its place in the record, and why."""

    place: str
    problem: str


@dataclass(slots=True)
class Part:
    """What one record gave to one stream, in its order."""

    origin: Origin
    items: list[Row | Lost] = field(default_factory=list)

    def add(self, event: Event, extra: str | None = None) -> None:
        """Append an event."""
        self.items.append(Row(event, extra))


@dataclass(slots=True)
class Decoded:
    """What one record of a source became. `seen` counts the source's own events by its own names for them.

    `unknown` counts what this version does not know by its name, `remarks` what is worth saying and no error.
    """

    parts: list[Part] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    remarks: Counter[str] = field(default_factory=Counter)
    bad: list[Bad] = field(default_factory=list)

    @property
    def rows(self) -> list[Row]:
        """All rows, stream by stream."""
        return [item for part in self.parts for item in part.items if isinstance(item, Row)]

    def quarantine(self, part: Part, t_ns: int, bad: Bad) -> None:
        """Keep a broken thing as what it is: counted, and told in its stream."""
        self.bad.append(bad)
        part.add(protocol_error(t_ns, f"quarantined: {bad.place}: {bad.problem}"))


def protocol_error(t_ns: int, text: str) -> Error:
    """The row that says what a decoder met and could not type."""
    return Error(t_ns=t_ns, reason=ErrorReason.PROTOCOL, text=text[:_TEXT_CHARACTERS])
