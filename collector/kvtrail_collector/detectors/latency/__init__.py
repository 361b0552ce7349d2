"""What makes requests slow."""

from typing import Final

from kvtrail_collector.detectors.latency import (
    capacity_cliff,
    compute_interference,
    hit_rate_misleads,
    lookup_bound,
    numa_cross,
    offload_not_paying,
    pageable_copy,
    remote_bandwidth_degraded,
    sched_queue,
    sched_stall,
    submit_bound,
    swap_saturated,
    thrash,
    tier_idle,
    tier_queue,
    tier_slow,
)
from kvtrail_collector.detectors.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    sched_queue.RULE,
    sched_stall.RULE,
    tier_queue.RULE,
    tier_slow.RULE,
    lookup_bound.RULE,
    submit_bound.RULE,
    numa_cross.RULE,
    pageable_copy.RULE,
    compute_interference.RULE,
    capacity_cliff.RULE,
    thrash.RULE,
    offload_not_paying.RULE,
    tier_idle.RULE,
    hit_rate_misleads.RULE,
    remote_bandwidth_degraded.RULE,
    swap_saturated.RULE,
)
"""In the order of the list of codes."""
