"""Numbers of the wire in words, for answers; one that this version does not know stays a number."""

from typing import Final

from kvtrail_schema.enums import Reason, Tier
from kvtrail_schema.kinds import Kind

_TIERS: Final = {tier.value: tier.name.lower() for tier in Tier}
_REASONS: Final = {reason.value: reason.name.lower() for reason in Reason}
_KINDS: Final = {kind.value: kind.name.lower() for kind in Kind}


def tier_name(number: int) -> str:
    """A tier in words."""
    return _TIERS.get(number, str(number))


def reason_name(number: int | None) -> str | None:
    """A reason in words; None where none was given."""
    return None if number is None else _REASONS.get(number, str(number))


def kind_name(number: int) -> str:
    """A kind in words."""
    return _KINDS.get(number, str(number))
