"""`COUNTER_DEAD`: a counter of the engine stands still while events prove that what it counts goes on."""

from collections.abc import Mapping
from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Row, Rule, Threshold
from kvtrail_collector.detectors.scene import Scene

_FLAT: Final = """
SELECT stream_id, "text" AS counter, count(*) AS samples, max("value") AS "value", min(t_ns) AS start_ns, max(t_ns) AS end_ns,
    refs_of(stream_id, seq) AS refs
FROM window_events WHERE kind = kind_no('counter_sampled') AND "text" IS NOT NULL
GROUP BY stream_id, "text" HAVING count(*) >= 2 AND min("value") = max("value")
"""
_ACTIVITY: Final = """
SELECT count(*) AS events FROM window_events
WHERE stream_id = $stream AND kind = $kind AND t_ns > $start AND t_ns <= $end
"""
_COUNTED: Final = (
    ("evict", Kind.EVICTED),
    ("prefetch", Kind.PREFETCH_ISSUED),
    ("preempt", Kind.REQUEST_PREEMPTED),
    ("hit", Kind.PREFIX_HIT),
    ("miss", Kind.PREFIX_MISS),
    ("swap_in", Kind.SWAP_IN_LOADED),
    ("swap_out", Kind.SWAP_OUT_WRITTEN),
)
"""Which events prove activity of a counter, by what its name contains; the first that fits."""
_SKIPPED: Final = ("wast", "fail", "error", "skip", "drop", "cancel", "bytes", "late", "missed")


def _find(scene: Scene, settings: Mapping[str, float]) -> list[Row]:
    """Flat counters beside at least so many events of what they count."""
    found: list[Row] = []
    for row in scene.ask(_FLAT):
        kind = _counted(str(row["counter"]))
        if kind is None:
            continue
        span = {"stream": row["stream_id"], "kind": kind.value, "start": row["start_ns"], "end": row["end_ns"]}
        events = int(str(scene.ask(_ACTIVITY, {name: int(str(value)) for name, value in span.items()})[0]["events"]))
        if events >= settings["events"]:
            found.append(_row(row, kind, events))
    return found


def _row(row: Row, kind: Kind, events: int) -> Row:
    """One dead counter."""
    seconds = (int(str(row["end_ns"])) - int(str(row["start_ns"]))) / 1e9
    figures: Row = {"counter": row["counter"], "value": row["value"], "flat_for_s": seconds}
    return figures | {kind.name.lower(): events, "refs": row["refs"]}


def _counted(counter: str) -> Kind | None:
    """The kind of event that a counter counts, as far as its name tells."""
    name = counter.lower()
    if any(word in name for word in _SKIPPED):
        return None
    return next((kind for word, kind in _COUNTED if word in name), None)


RULE: Final = Rule(
    code="COUNTER_DEAD",
    family=Family.FIGURES,
    basis=Basis.INVARIANT,
    means="A figure on somebody's dashboard does not move, though what it counts happens all the time.",
    check='SELECT "text", min("value"), max("value"), count(*) FROM events WHERE kind = kind_no(\'counter_sampled\') '
    "GROUP BY 1",
    action="do not rely on it; a bug of the producer",
    unlike="An idle engine: nothing happens, so nothing is counted.",
    find=_find,
    triggers=(Kind.COUNTER_SAMPLED,),
    thresholds=(Threshold("events", 20, "events", "that must have happened while the counter stood still"),),
)
