"""`NUMA_CROSS`: the slow transfers are exactly among those whose buffer and device are on different nodes."""

from collections.abc import Mapping
from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Row, Rule, Threshold
from kvtrail_collector.detectors.scene import Scene

_QUESTION: Final = """
WITH op AS (
    SELECT stream_id, tier, seq, numa <> device_numa AS crosses, (coalesce(io_ns, 0) + coalesce(copy_ns, 0)) AS moved_ns,
        (coalesce(io_ns, 0) + coalesce(copy_ns, 0)) / greatest(bytes, 1) AS ns_per_byte
    FROM window_ops WHERE closed_ns IS NOT NULL AND numa >= 0 AND device_numa >= 0 AND bytes > 0
), usual AS (
    SELECT stream_id, tier, median(ns_per_byte) FILTER (NOT crosses) AS ns_per_byte, median(moved_ns) AS moved_ns FROM op
    GROUP BY ALL
)
SELECT op.tier, count(*) FILTER (crosses AND op.ns_per_byte > $times * usual.ns_per_byte) AS slow_crossing,
    count(*) FILTER (crosses AND op.ns_per_byte <= $times * usual.ns_per_byte) AS fast_crossing,
    count(*) FILTER (NOT crosses AND op.ns_per_byte > $times * usual.ns_per_byte) AS slow_local,
    count(*) FILTER (NOT crosses AND op.ns_per_byte <= $times * usual.ns_per_byte) AS fast_local,
    sum(op.moved_ns) FILTER (crosses AND op.ns_per_byte > $times * usual.ns_per_byte) AS touched_ns,
    refs_of(op.stream_id, op.seq) FILTER (crosses AND op.ns_per_byte > $times * usual.ns_per_byte) AS refs
FROM op JOIN usual USING (stream_id, tier) GROUP BY op.stream_id, op.tier
"""


def _find(scene: Scene, settings: Mapping[str, float]) -> list[Row]:
    """Those of which Fisher's exact test says that slowness and crossing go together, and where no local one is slow."""
    from scipy.stats import fisher_exact  # noqa: PLC0415 - takes a second to load, and is rarely needed

    found = []
    for row in scene.ask(_QUESTION, settings):
        counts = [int(str(row[name])) for name in ("slow_crossing", "fast_crossing", "slow_local", "fast_local")]
        p_value = float(fisher_exact([counts[:2], counts[2:]], alternative="greater")[1])
        if counts[0] and not counts[2] and p_value < settings["p_value"]:
            found.append(row | {"p_value": p_value, "sure": 1 - p_value, "share": counts[0] / max(sum(counts), 1)})
    return found


RULE: Final = Rule(
    code="NUMA_CROSS",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="Transfers between a device and memory on another NUMA node are slow, local ones are not.",
    check="SELECT numa, device_numa, avg(copy_ns / bytes) FROM events WHERE bytes > 0 AND numa IS NOT NULL GROUP BY ALL",
    action="bind processes and host buffers to the node of their device",
    unlike="`TIER_SLOW`: all transfers are slow, whatever their node.",
    find=_find,
    needs=(Need((Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN), ("device_numa",)),),
    thresholds=(
        Threshold("times", 3, "ratio", "how many times the usual time per byte a slow transfer takes"),
        Threshold("p_value", 0.01, "probability", "of Fisher's exact test, below which the two go together"),
    ),
)
