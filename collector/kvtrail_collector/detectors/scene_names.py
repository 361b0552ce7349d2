"""Names in SQL instead of numbers: `kind_no('evicted')`, `tier_no('nvme')`, `reason_no('capacity')`, and small helpers."""

import re
from enum import IntEnum
from typing import Final

from kvtrail_schema.enums import Reason, Stage, Tier
from kvtrail_schema.kinds import Kind

ENUMS: Final[dict[str, type[IntEnum]]] = {"kind_no": Kind, "tier_no": Tier, "reason_no": Reason, "stage_no": Stage}
_REFS: Final = re.compile(r"\brefs_of\((\w[\w.]*),\s+([^()]+(?:\([^()]*\))?)\)")
_CALL: Final = re.compile(r"\b(" + "|".join(ENUMS) + r")\('(\w+)'\)")


def macros() -> list[str]:
    """The statements that teach one connection the names of numbers that stand in columns."""
    pairs = (("tier_name", Tier), ("reason_name", Reason))
    named = [
        f"CREATE OR REPLACE TEMP MACRO {macro}(number) AS {_lookup(members)}[number::INTEGER + 1]" for macro, members in pairs
    ]
    return [*named, "CREATE OR REPLACE TEMP MACRO hex16(id) AS format('{:016x}', id)"]


def _lookup(members: type[IntEnum]) -> str:
    """A list in which each name stands at its number."""
    names = {one.value: f"'{one.name.lower()}'" for one in members}
    return f"[{', '.join(names.get(number, 'NULL') for number in range(max(names) + 1))}]"


def plain(sql: str) -> str:
    """SQL as the database gets it: names of kinds, tiers and reasons are numbers, and references spelled out."""
    return with_refs(with_numbers(sql))


def with_refs(sql: str) -> str:
    """The same SQL with each `refs_of(stream, seq)` spelled out: up to five references, the earliest ones.

    As text and not as a macro, since macros of aggregates take no FILTER.
    """
    return _REFS.sub(r"min({'stream': \1, 'seq': \2}, 5)", sql)


def with_numbers(sql: str) -> str:
    """The same SQL for a connection that knows none of these names: each as its number, beside the name."""
    return _CALL.sub(lambda call: f"{ENUMS[call[1]][call[2].upper()].value} /* {call[2]} */", sql)
