"""`CAP_EXCEEDED`: a tier, or a tenant's share of it, holds more than its quota."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
SELECT tier, ns, max(used_bytes / capacity_bytes) AS times_the_cap, max(used_bytes) AS used_bytes,
    max(capacity_bytes) AS cap_bytes,
    count(*) AS samples, 0 AS touched_ns, refs_of(stream_id, seq) AS refs
FROM window_events WHERE kind = kind_no('capacity_sampled') AND capacity_bytes > 0 AND used_bytes > $times * capacity_bytes
GROUP BY stream_id, tier, ns
"""

RULE: Final = Rule(
    code="CAP_EXCEEDED",
    family=Family.POOLS,
    basis=Basis.INVARIANT,
    means="The limit of the tier is not kept: it holds more than it may, and somebody else's room.",
    check="SELECT tier, max(used_bytes / capacity_bytes) FROM events WHERE kind = kind_no('capacity_sampled') GROUP BY tier",
    action="evict down to the cap, and find out why eviction does not run",
    unlike="A tier that is full.",
    question=_QUESTION,
    needs=(Need((Kind.CAPACITY_SAMPLED,), ("capacity_bytes",)),),
    triggers=(Kind.CAPACITY_SAMPLED,),
    thresholds=(Threshold("times", 1.02, "ratio", "of the cap from which it counts as exceeded"),),
)
