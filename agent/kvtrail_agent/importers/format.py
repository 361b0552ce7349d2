"""What an import format is: a name, how its files are read, what decodes its records, and what it cannot tell."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from kvtrail_agent.importers.decoded import Decoded
from kvtrail_agent.importers.records import Reader


class Decoder(Protocol):
    """**Protocol:** turns the records of one source, in their order, into rows; raises on no input. One thread uses it."""

    def decode(self, value: object, sequence: str = "") -> Decoded:
        """One record: a decoded JSON value or a row of CSV. `sequence` tells apart what one file holds of several engines."""
        ...

    def finish(self) -> Decoded:
        """What follows once all records are there: joins, and what was held back. A live source asks now and then."""
        ...


class Source(NamedTuple):
    """What a decoder is opened with: the fleet key, and a number that tells this source from any other.

    The number tells lives apart where the source itself has nothing that would: the digest of a file, the time of a connection.
    """

    key: bytes
    number: int = 0


class TimeBase(Enum):
    """What the times of a format are."""

    WALL = "wall"
    """Since 1970, on the clock of the host that wrote them."""
    STEADY = "steady"
    """On a clock that nothing ties to the time of day: durations are right, moments are not known."""
    ORDER = "order"
    """None: events are numbered, a nanosecond each, and only their order means anything."""


class Missing(NamedTuple):
    """Something that a format cannot tell, and what follows from that."""

    what: str
    so_what: str


@dataclass(frozen=True, slots=True)
class Format:
    """One format of `kvtrail import`."""

    name: str
    title: str
    read: Reader
    open: Callable[[Source], Decoder]
    times: TimeBase
    missing: tuple[Missing, ...]
    left_out: tuple[str, ...] = ()
    """Fields that are read and not kept, since they hold tokens or names in clear."""
