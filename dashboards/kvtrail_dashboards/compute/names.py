"""What people call a hashed tenant or model: the operator's name, or the beginning of the hash."""

from collections.abc import Mapping

from kvtrail_dashboards.page_answers import Engines

Names = Mapping[str, str]
"""Names by hashed value."""

NOT_NAMED = "not named"


def names_of(known: Engines) -> Names:
    """The operator's names, as the collector tells them."""
    return {one.id: one.name for one in (*known.tenants, *known.models) if one.name != one.id}


def name_of(names: Names, value: str | None) -> str:
    """A tenant or model for people."""
    return NOT_NAMED if value is None else names.get(value, value)
