"""`DST_CONFLICT`: two transfers into the same place overlap in time."""

from collections.abc import Mapping
from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.crowded_places import crowded_places
from kvtrail_collector.detectors.rule import Basis, Family, Need, Row, Rule
from kvtrail_collector.detectors.scene import Scene

_QUESTION: Final = """
WITH span AS (
    SELECT stream_id, dst, slot, op, min(t_ns) AS start_ns, max(t_ns) AS end_ns, min(seq) AS seq, any_value(block) AS block,
        min(kind) < max(kind) AS is_whole
    FROM window_events $among WHERE kind IN (kind_no('swap_out_started'), kind_no('swap_out_written'),
        kind_no('swap_in_started'), kind_no('swap_in_loaded')) AND slot IS NOT NULL AND op IS NOT NULL
    GROUP BY stream_id, dst, slot, op
), follow AS (
    SELECT *, lag(end_ns) OVER place AS before_ns, lag(op) OVER place AS before_op, lag(block) OVER place AS before_block
    FROM span WHERE is_whole WINDOW place AS (PARTITION BY stream_id, dst, slot ORDER BY end_ns, start_ns)
)
SELECT dst AS tier, count(*) AS conflicts, arg_min(slot, seq) AS slot, max(before_ns - start_ns) / 1e6 AS longest_overlap_ms,
    count(*) FILTER (block IS DISTINCT FROM before_block) AS of_other_blocks, 0 AS touched_ns, refs_of(stream_id, seq) AS refs
FROM follow WHERE before_ns > start_ns AND before_op <> op GROUP BY stream_id, dst
"""
_AMONG: Final = "SEMI JOIN crowded_in USING (stream_id, dst, slot)"


def _find(scene: Scene, _settings: Mapping[str, float]) -> list[Row]:
    """Overlaps in the few places where there can be any."""
    crowded = crowded_places(scene)
    if crowded is None:
        return scene.ask(_QUESTION.replace("$among", ""))
    if not crowded.num_rows:
        return []
    with scene.beside("crowded_in", crowded):
        return scene.ask(_QUESTION.replace("$among", _AMONG))


RULE: Final = Rule(
    code="DST_CONFLICT",
    family=Family.INTEGRITY,
    basis=Basis.INVARIANT,
    means="Two transfers wrote to one place at the same time: what lies there is a mixture.",
    check="SELECT dst, slot, op, min(t_ns), max(t_ns) FROM events WHERE kind IN (kind_no('swap_in_started'), "
    "kind_no('swap_in_loaded')) GROUP BY ALL ORDER BY dst, slot, 4",
    action="give a place out again only after the last transfer into it has ended",
    unlike="Transfers that follow each other back to back.",
    find=_find,
    needs=(Need((Kind.SWAP_IN_STARTED, Kind.SWAP_OUT_STARTED), ("slot",)),),
    triggers=(Kind.SWAP_IN_STARTED, Kind.SWAP_OUT_STARTED),
)
