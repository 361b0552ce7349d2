"""`SCHEMA_UNKNOWN`: events of a version that this one does not know; they are kept, unread."""

from collections.abc import Mapping
from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Row, Rule
from kvtrail_collector.detectors.scene import Scene

_KNOWN: Final = frozenset(kind.value for kind in Kind)
_KINDS: Final = """
SELECT kind AS unknown_kind, count(*) AS events, 'an unknown kind' AS what, refs_of(stream_id, seq) AS refs FROM window_events
WHERE kind > $largest GROUP BY stream_id, kind
"""
_FIELDS: Final = """
SELECT count(*) AS events, 'unknown fields' AS what, refs_of(stream_id, seq) AS refs FROM window_events
WHERE extra IS NOT NULL GROUP BY stream_id
"""


def _find(scene: Scene, _settings: Mapping[str, float]) -> list[Row]:
    """Rows of unknown kinds, rows with unknown fields, and lines of a file that name such kinds."""
    found = scene.ask(_FIELDS)
    if scene.kinds.keys() - _KNOWN - {0}:
        found += scene.ask(_KINDS, {"largest": max(_KNOWN)})
    if scene.unknown_lines:
        found.append({"events": scene.unknown_lines, "what": "lines of an unknown kind"})
    return found


RULE: Final = Rule(
    code="SCHEMA_UNKNOWN",
    family=Family.STREAM,
    basis=Basis.INVARIANT,
    means="A producer is newer than this collector: a part of what it says is not understood.",
    check="SELECT kind, count(*) FROM events WHERE kind > 70 OR extra IS NOT NULL GROUP BY kind",
    action="upgrade the collector; what was kept is understood then",
    unlike="`MALFORMED`: known events that contradict themselves.",
    find=_find,
)
