"""What engines say of themselves at their start, read with care: it is text from outside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from kvtrail_collector.detectors.scene import Scene

_QUESTION: Final = """
SELECT stream_id, seq, t_ns, "text" FROM window_events WHERE kind = kind_no('manifest_declared') ORDER BY t_ns
"""


class Manifest(NamedTuple):
    """One declaration: its members, its stream, and the reference of its event."""

    members: dict[str, object]
    stream_id: int
    ref: object


def manifests(scene: Scene) -> list[Manifest]:
    """Every manifest that is a JSON object, oldest first."""
    found = []
    for row in scene.ask(_QUESTION):
        members = members_of(str(row["text"]))
        if members is not None:
            stream_id = int(str(row["stream_id"]))
            found.append(Manifest(members, stream_id, {"stream": stream_id, "seq": row["seq"]}))
    return found


def members_of(text: str) -> dict[str, object] | None:
    """The members of one declaration; None where its text is no JSON object."""
    try:
        members = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return None
    return members if isinstance(members, dict) else None


def whole(manifest: Manifest, name: str) -> int | None:
    """A member that is a whole number; None where it is none."""
    return whole_of(manifest.members, name)


def whole_of(members: Mapping[str, object], name: str) -> int | None:
    """As `whole`, of members alone."""
    value = members.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
