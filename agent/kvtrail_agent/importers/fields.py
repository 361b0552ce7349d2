"""Fields of what another engine wrote, by name and in the type that they must have; each error says which field and why."""

from typing import Final

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.hashes import shown

Fields = dict[str, object]
"""One decoded JSON object or map of a source."""

U16: Final = 2**16 - 2
U32: Final = 2**32 - 2
U64: Final = 2**64 - 2
_LATEST_S: Final = 9_000_000_000
_S_NS: Final = 1_000_000_000


def object_of(value: object, what: str) -> Fields:
    """A JSON object.

    Raises:
        ForeignInvalid: it is none, or its keys are no texts.
    """
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return value
    raise ForeignInvalid(f"{what} is {shown(value)} where an object is due")


def list_of(fields: Fields, name: str) -> list[object]:
    """A field that is a list. Raises `ForeignInvalid` where it is none."""
    value = fields.get(name)
    if isinstance(value, list):
        return value
    raise ForeignInvalid(f"{name} is {shown(value)} where a list is due")


def whole(fields: Fields, name: str, most: int = U32, *, least: int = 0) -> int | None:
    """A field that is a whole number within bounds, None where it is absent. Raises `ForeignInvalid` where it is none."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise ForeignInvalid(f"{name} is {shown(value)} where a whole number from {least} to {most} is due")


def needed(fields: Fields, name: str, most: int = U32, *, least: int = 0) -> int:
    """A field that is a whole number and must be there. Raises as `whole`."""
    value = whole(fields, name, most, least=least)
    if value is None:
        raise ForeignInvalid(f"{name} is not there")
    return value


def text_of(fields: Fields, name: str) -> str | None:
    """A field that is a text, None where it is absent or empty. Raises `ForeignInvalid` where it is none."""
    value = fields.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value
    raise ForeignInvalid(f"{name} is {shown(value)} where a text is due")


def number(value: object) -> float | None:
    """A finite number, also one that is written as a text; None where it is none."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if found - found == 0 else None


def seconds_ns(value: object) -> int | None:
    """Seconds, since 1970 or on a steady clock, as nanoseconds; None where they are no such number.

    Whole seconds and the rest by themselves: together they do not fit a double.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LATEST_S:
        return None
    seconds = int(value)
    return seconds * _S_NS + round((value - seconds) * _S_NS)
