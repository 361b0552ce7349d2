"""`OBSERVER_BACKPRESSURE`: the recorder dropped events rather than hold the engine up; results are incomplete."""

from collections.abc import Mapping
from typing import Final

from kvtrail_collector.detectors.rule import Basis, Family, Row, Rule, Threshold
from kvtrail_collector.detectors.scene import Scene
from kvtrail_collector.detectors.stream.holes import StreamHoles, holes_of

_EARLY_STAGES: Final = frozenset({"ring", "encode", "spool", "transport"})


def _find(scene: Scene, settings: Mapping[str, float]) -> list[Row]:
    """One row a stream whose recorder or shipper dropped events."""
    rows = [_row(holes) for holes in holes_of(scene)]
    return [row for row in rows if row is not None and float(str(row["share"])) >= settings["share"]]


def _row(holes: StreamHoles) -> Row | None:
    """What one recorder dropped, by stage and reason."""
    loss = holes.loss
    dropped = {f"{drop.stage}_{drop.reason}": drop.count for drop in loss.dropped if drop.stage in _EARLY_STAGES}
    if not dropped:
        return None
    total = sum(dropped.values())
    coverage = 1 - total / max(loss.produced, 1)
    refs: list[object] = [{"stream": holes.stream_id, "seq": 1}]
    head: Row = {"engine": loss.engine, "rank": loss.rank, "dropped": total, "stream_coverage": coverage}
    return head | dropped | {"share": 1 - coverage, "refs": refs}


RULE: Final = Rule(
    code="OBSERVER_BACKPRESSURE",
    family=Family.STREAM,
    basis=Basis.INVARIANT,
    means="The stream has declared holes: the engine was faster than the way to the collector. Shares and counts "
    "are of what is left.",
    check="SELECT stage, reason, sum(\"count\") FROM events WHERE kind = kind_no('events_dropped') GROUP BY ALL",
    action="enlarge the ring or the spool, or mend the way to the collector",
    unlike="`GAP`: holes that nobody declared.",
    find=_find,
    thresholds=(Threshold("share", 0.0001, "share", "of the produced events that must be dropped"),),
)
