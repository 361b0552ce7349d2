"""`INGEST_LOSS`: fewer events are stored than were produced, and the rest is not on its way."""

from collections.abc import Mapping
from typing import Final

from kvtrail_collector.detectors.rule import Basis, Family, Row, Rule, Threshold
from kvtrail_collector.detectors.scene import Scene
from kvtrail_collector.detectors.stream.holes import StreamHoles, holes_of

_LATE_STAGES: Final = frozenset({"broker", "collector"})


def _find(scene: Scene, settings: Mapping[str, float]) -> list[Row]:
    """One row a stream that lost more than a sliver beyond its recorder."""
    rows = [_row(holes) for holes in holes_of(scene)]
    return [row for row in rows if row is not None and float(str(row["share"])) >= settings["share"]]


def _row(holes: StreamHoles) -> Row | None:
    """What one stream lost on the way, by stage; None where nothing. What expired later had arrived."""
    loss = holes.loss
    tail = sum(last - first + 1 for first, last in holes.beyond)
    dropped = [drop for drop in loss.dropped if drop.stage in _LATE_STAGES and not drop.is_expiry]
    late = {f"{drop.stage}_{drop.reason}": drop.count for drop in dropped}
    lost = tail + sum(late.values())
    if not lost:
        return None
    refs: list[object] = [{"stream": holes.stream_id, "seq": max(loss.stored, 1)}]
    figures: Row = {"engine": loss.engine, "rank": loss.rank, "produced": loss.produced, "stored": loss.stored, "lost": lost}
    return figures | late | {"unaccounted": tail, "share": lost / max(loss.produced, 1), "refs": refs}


RULE: Final = Rule(
    code="INGEST_LOSS",
    family=Family.STREAM,
    basis=Basis.INVARIANT,
    means="The counters of both ends differ: what is shown is a part of what happened, though the part looks healthy.",
    check="SELECT stream_id, produced FROM stream_marks",
    action="see `kvtrail loss` for the stage that loses; enlarge its buffer, or send less",
    unlike="A lag that shrinks: events on their way are not lost. What retention let go of: it had been stored. "
    "`GAP`: holes before the last stored event.",
    find=_find,
    thresholds=(Threshold("share", 0.0001, "share", "of the produced events that must be lost"),),
)
