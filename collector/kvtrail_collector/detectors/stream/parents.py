"""Blocks with unknown parents, told apart by whether their stream is whole from its first event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvtrail_collector.detectors.rule import Find, Row
from kvtrail_collector.detectors.scene import Scene
from kvtrail_collector.detectors.stream.holes import holes_of

_ORPHANS: Final = """
SELECT own.stream_id, tier, count(*) AS blocks, hex16(arg_min(own.parent, own.seq)) AS parent, min(own.seq) AS first_seq,
    count(started.t_ns) > 0 AS is_restarted, 0 AS touched_ns, refs_of(own.stream_id, own.seq) AS refs
FROM window_lost_parents AS own LEFT JOIN (
    SELECT stream_id, t_ns FROM window_events WHERE kind = kind_no('agent_started') AND previous_epoch IS NOT NULL
) AS started ON started.stream_id = own.stream_id
GROUP BY own.stream_id, tier
"""
_FIRST: Final = "SELECT stream_id, min(seq) AS first_seq FROM window_events GROUP BY stream_id"


def orphans_where(*, is_whole: bool) -> Find:
    """The question for streams that are whole, or that are not."""

    def find(scene: Scene, _settings: Mapping[str, float]) -> list[Row]:
        rows = scene.ask(_ORPHANS)
        broken = _broken_streams(scene) if rows else frozenset()
        chosen = [row for row in rows if (row["stream_id"] in broken or bool(row["is_restarted"])) is not is_whole]
        return [{name: value for name, value in row.items() if name not in _INNER} for row in chosen]

    return find


_INNER: Final = frozenset({"stream_id", "first_seq", "is_restarted"})


def _broken_streams(scene: Scene) -> frozenset[int]:
    """Streams with a hole, a drop, or a beginning that is not there."""
    late = {int(str(row["stream_id"])) for row in scene.ask(_FIRST) if int(str(row["first_seq"])) > 1}
    holed = {holes.stream_id for holes in holes_of(scene) if holes.inside or holes.loss.dropped}
    return frozenset(late | holed)
