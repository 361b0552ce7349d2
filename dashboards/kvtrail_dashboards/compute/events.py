"""Events by name: as links hold them."""

from typing import Final

from kvtrail_dashboards.answers import EventRef

_PARTS: Final = 4
_MOST_DIGITS: Final = 20
"""Of a number of 64 bits."""


def name_of_event(ref: EventRef) -> str:
    """An event as a link names it."""
    return f"{ref.engine}/{ref.epoch}/{ref.rank}/{ref.seq}"


def event_of_name(name: str) -> EventRef | None:
    """The event that a link names; None where it names none. An engine's own name may hold slashes."""
    parts = name.rsplit("/", _PARTS - 1)
    if len(parts) != _PARTS or not all(part.isascii() and part.isdecimal() and len(part) <= _MOST_DIGITS for part in parts[1:]):
        return None
    epoch, rank, seq = (int(part) for part in parts[1:])
    return EventRef(parts[0], epoch, rank, seq)
