"""`GAP`: seqs inside the stored range are missing, and nobody says why: what they touched is unknown."""

from collections.abc import Mapping
from typing import Final

from kvtrail_collector.detectors.rule import Basis, Family, Row, Rule
from kvtrail_collector.detectors.scene import Scene
from kvtrail_collector.detectors.stream.holes import StreamHoles, holes_of

_UNKNOWN: Final = """
SELECT count(DISTINCT block) AS blocks, arg_max(seq, seq) AS seq FROM window_events
WHERE stream_id = $stream AND seq < $first AND block IS NOT NULL
"""


def _find(scene: Scene, _settings: Mapping[str, float]) -> list[Row]:
    """One row a stream that has holes before its last stored event."""
    return [_row(scene, holes) for holes in holes_of(scene) if holes.inside]


def _row(scene: Scene, holes: StreamHoles) -> Row:
    """The holes of one stream, as one finding."""
    first, last = holes.inside[0]
    unknown = scene.ask(_UNKNOWN, {"stream": holes.stream_id, "first": first})[0]
    missing = sum(end - begin + 1 for begin, end in holes.inside)
    refs: list[object] = [{"stream": holes.stream_id, "seq": max(first - 1, last + 1 if first == 1 else 1)}]
    return {
        "engine": holes.loss.engine,
        "rank": holes.loss.rank,
        "missing": missing,
        "first_gap": f"{first}..{last}",
        "gaps": len(holes.inside),
        "blocks_unknown": unknown["blocks"],
        "share": missing / max(holes.loss.produced, 1),
        "refs": refs,
    }


RULE: Final = Rule(
    code="GAP",
    family=Family.STREAM,
    basis=Basis.INVARIANT,
    means="Events are missing in the middle of a stream. The state of the blocks that they may have touched is "
    "unknown, not evicted.",
    check="SELECT stream_id, first_seq, last_seq FROM seq_ranges ORDER BY 1, 2",
    action="send the events again where they are still spooled; until then treat the blocks as unknown",
    unlike="`INGEST_LOSS`: the tail is missing. `OBSERVER_BACKPRESSURE`: the recorder says that it dropped them.",
    find=_find,
)
