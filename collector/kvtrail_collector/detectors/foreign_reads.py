"""Reads across namespaces, by pair, and in which members the two differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from kvtrail_collector.detectors.rule import Row
from kvtrail_collector.detectors.scene import Scene

_READS: Final = """
SELECT made_ns, ns, tier, count(*) AS reads, count(*) AS cases, hex16(arg_min(block, seq)) AS block, 0 AS touched_ns,
    refs_of(stream_id, seq) AS refs
FROM window_foreign_reads GROUP BY made_ns, ns, tier
"""
_DECLARED: Final = """
SELECT ns, "text" FROM window_events WHERE kind = kind_no('namespace_declared') AND ns IS NOT NULL
"""


class ForeignReads(NamedTuple):
    """Reads by one namespace of blocks of another; whether both are the same but for versions."""

    row: Row
    is_version_only: bool


def foreign_reads(scene: Scene) -> list[ForeignReads]:
    """All pairs of namespaces between which blocks were read."""
    rows = scene.ask(_READS)
    if not rows:
        return []
    members = {str(row["ns"]): _members(row["text"]) for row in scene.ask(_DECLARED)}
    return [_pair(row, members) for row in rows]


def _pair(row: Row, members: Mapping[str, dict[str, object]]) -> ForeignReads:
    """One pair, with what its namespaces differ in."""
    made, reader = row.pop("made_ns"), row["ns"]
    own, other = members.get(str(reader), {}), members.get(str(made), {})
    differs = sorted(name for name in own.keys() | other.keys() if own.get(name) != other.get(name))
    named: Row = {"created_in": f"{made:016x}", "read_in": f"{reader:016x}", "differs_in": ", ".join(differs) or "not declared"}
    return ForeignReads(row | named, bool(differs) and all("version" in name for name in differs))


def _members(text: object) -> dict[str, object]:
    """The members of a namespace as they were declared; none where the text is no object."""
    try:
        members = json.loads(str(text))
    except (json.JSONDecodeError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}
