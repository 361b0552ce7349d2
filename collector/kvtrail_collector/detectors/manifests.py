"""What engines say of themselves at their start, read with care: it is text from outside."""

from __future__ import annotations

import json
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
        try:
            members = json.loads(str(row["text"]))
        except (json.JSONDecodeError, RecursionError):
            continue
        if isinstance(members, dict):
            stream_id = int(str(row["stream_id"]))
            found.append(Manifest(members, stream_id, {"stream": stream_id, "seq": row["seq"]}))
    return found


def whole(manifest: Manifest, name: str) -> int | None:
    """A member that is a whole number; None where it is none."""
    value = manifest.members.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
