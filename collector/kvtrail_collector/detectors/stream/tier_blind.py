"""`TIER_BLIND`: a tier reports what it takes, and never what it lets go: its residency is an upper bound."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Rule, Threshold

_QUESTION: Final = """
WITH stored AS (
    SELECT stream_id, dst AS tier, count(*) AS blocks, sum(bytes) AS bytes, max(t_ns) - min(t_ns) AS span_ns,
        refs_of(stream_id, seq) AS refs
    FROM window_events WHERE kind = kind_no('swap_out_written') GROUP BY ALL
), removed AS (
    SELECT DISTINCT stream_id, tier FROM window_events
    WHERE kind IN (kind_no('evicted'), kind_no('invalidated'), kind_no('tier_cleared'))
), known AS (
    SELECT DISTINCT stream_id, tier FROM window_events WHERE kind IN (kind_no('tier_declared'), kind_no('capacity_sampled'))
        AND capacity_bytes > 0
)
SELECT tier, blocks AS stores, blocks AS cases, 0 AS removals, span_ns / 3.6e12 AS over_hours, 0 AS touched_ns, refs FROM stored
ANTI JOIN removed ON removed.stream_id = stored.stream_id AND removed.tier = stored.tier
ANTI JOIN known ON known.stream_id = stored.stream_id AND known.tier = stored.tier
WHERE blocks >= $stores
"""

RULE: Final = Rule(
    code="TIER_BLIND",
    family=Family.STREAM,
    basis=Basis.MECHANISM,
    means="What this tier holds is not known: everything that was ever stored counts as resident.",
    check="SELECT dst, count(*) FROM events WHERE kind = kind_no('swap_out_written') GROUP BY dst",
    action="let the producer report removals, or at least the size of the tier",
    unlike="A tier that is not full yet: where its size is known, nothing has to be removed.",
    question=_QUESTION,
    triggers=(Kind.SWAP_OUT_WRITTEN,),
    thresholds=(Threshold("stores", 1000, "blocks", "how many must have been stored"),),
    evidence=Evidence.ABSENCE_EVER,
)
