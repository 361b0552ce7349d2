"""`ORDER_VIOLATION`: a block was saved before it was computed, or read before it was loaded."""

from collections.abc import Mapping
from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Row, Rule, Threshold
from kvtrail_collector.detectors.scene import Scene

_SAVES: Final = """
WITH made AS (
    SELECT stream_id, block, min(t_ns) AS t_ns FROM window_events
    WHERE kind IN (kind_no('block_created'), kind_no('swap_in_loaded')) AND block IN (SELECT block FROM window_events
        WHERE kind = kind_no('swap_out_started') AND src = tier_no('gpu'))
        AND coalesce(dst, tier) = tier_no('gpu') GROUP BY ALL
), early AS (
    SELECT own.stream_id, own.seq, own.block, own.src AS tier, made.t_ns - own.t_ns AS early_ns
    FROM window_events AS own JOIN made ON made.stream_id = own.stream_id AND made.block = own.block
    WHERE own.kind = kind_no('swap_out_started') AND own.src = tier_no('gpu') AND own.t_ns < made.t_ns
)
SELECT tier, 'saved before it was computed' AS what, count(*) AS violations, hex16(arg_min(block, seq)) AS block,
    max(early_ns) / 1e6 AS most_early_ms, 0 AS touched_ns, refs_of(stream_id, seq) AS refs
FROM early WHERE early_ns > $slack_ms * 1e6 GROUP BY stream_id, tier
"""
_READS: Final = """
WITH fill AS (
    SELECT stream_id, block, dst AS tier, slot, min(t_ns) AS t_ns FROM window_events
    WHERE kind = kind_no('swap_in_loaded') AND slot IS NOT NULL
        AND block IN (SELECT block FROM window_events WHERE kind = kind_no('attention_read')) GROUP BY ALL
), first_made AS (
    SELECT stream_id, block, tier, slot, min(t_ns) AS t_ns FROM window_events
    WHERE kind = kind_no('block_created') AND block IN (SELECT block FROM fill) GROUP BY ALL
), early AS (
    SELECT own.stream_id, own.seq, own.block, own.tier, fill.t_ns - own.t_ns AS early_ns
    FROM window_events AS own JOIN fill USING (stream_id, block, tier, slot)
    JOIN window_events AS begun ON begun.stream_id = own.stream_id AND begun.block = own.block AND begun.dst = own.tier
        AND begun.slot = own.slot AND begun.kind = kind_no('swap_in_started') AND begun.t_ns <= own.t_ns
    LEFT JOIN first_made USING (stream_id, block, tier, slot)
    WHERE own.kind = kind_no('attention_read') AND own.t_ns < fill.t_ns AND coalesce(first_made.t_ns, own.t_ns + 1) > own.t_ns
)
SELECT tier, 'read before it was loaded' AS what, count(*) AS violations, hex16(arg_min(block, seq)) AS block,
    max(early_ns) / 1e6 AS most_early_ms, 0 AS touched_ns, refs_of(stream_id, seq) AS refs
FROM early WHERE early_ns > $slack_ms * 1e6 GROUP BY stream_id, tier
"""


def _find(scene: Scene, settings: Mapping[str, float]) -> list[Row]:
    """Both sorts, each only where the kinds are there that could show it."""
    found = scene.ask(_SAVES, settings) if Kind.SWAP_OUT_STARTED.value in scene.kinds else []
    could_be_read = {Kind.ATTENTION_READ.value, Kind.SWAP_IN_STARTED.value} <= scene.kinds.keys()
    return [*found, *(scene.ask(_READS, settings) if could_be_read else [])]


RULE: Final = Rule(
    code="ORDER_VIOLATION",
    family=Family.INTEGRITY,
    basis=Basis.INVARIANT,
    means="A transfer did not wait for what it depends on: what was saved or read may be garbage, without any error.",
    check="SELECT block, kind, t_ns FROM events WHERE kind IN (kind_no('block_created'), kind_no('swap_out_started')) "
    "ORDER BY block, t_ns",
    action="let the transfer wait for the event of the kernel, or of the copy, before it",
    unlike="Clocks of different threads that differ by less than the slack.",
    find=_find,
    needs=(Need((Kind.BLOCK_CREATED, Kind.SWAP_IN_LOADED)),),
    triggers=(Kind.SWAP_OUT_STARTED, Kind.ATTENTION_READ),
    thresholds=(Threshold("slack_ms", 1, "ms", "by which an event may seem early"),),
)
