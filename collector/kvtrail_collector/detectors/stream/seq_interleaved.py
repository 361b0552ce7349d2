"""`SEQ_INTERLEAVED`: two writers speak as one stream: the same seqs say different things."""

from collections.abc import Mapping
from typing import Final

from kvtrail_collector.detectors.rule import Basis, Family, Row, Rule
from kvtrail_collector.detectors.scene import Scene

_COUNTS: Final = "SELECT stream_id, events FROM window_streams"
_TWICE: Final = """
WITH twice AS (
    SELECT stream_id, seq FROM window_events WHERE stream_id = $stream GROUP BY stream_id, seq HAVING count(*) > 1
)
SELECT engine, rank, count(*) AS seqs_twice, min(seq) AS first_seq, 0 AS touched_ns, refs_of(stream_id, seq) AS refs
FROM twice JOIN streams USING (stream_id) GROUP BY engine, rank
"""


def _find(scene: Scene, _settings: Mapping[str, float]) -> list[Row]:
    """Streams with more events than seqs. The books say which; only those are looked through."""
    stored = {(loss.engine, loss.epoch, loss.rank): loss.stored for loss in scene.loss.streams}
    found: list[Row] = []
    for row in scene.ask(_COUNTS):
        stream_id, events = int(str(row["stream_id"])), int(str(row["events"]))
        if events > stored.get(scene.streams.get(stream_id, ("", 0, 0)), events):
            found += scene.ask(_TWICE, {"stream": stream_id})
    return found


RULE: Final = Rule(
    code="SEQ_INTERLEAVED",
    family=Family.STREAM,
    basis=Basis.INVARIANT,
    means="Two processes write under one name: their events are mixed, and half of them may be taken for duplicates.",
    check="SELECT stream_id, seq, count(*) FROM events GROUP BY ALL HAVING count(*) > 1 LIMIT 10",
    action="give every engine and rank a name of its own",
    unlike="A batch that was sent twice: equal seqs, equal content. A collector drops those before they are stored.",
    find=_find,
)
