"""What is stored, and cannot be got at."""

from typing import Final

from kvtrail_collector.detectors.reach import (
    admission_never,
    broken_prefix,
    hit_truncated,
    offload_starved,
    phantom_hit,
    read_failure,
    write_only_tier,
)
from kvtrail_collector.detectors.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    broken_prefix.RULE,
    hit_truncated.RULE,
    phantom_hit.RULE,
    admission_never.RULE,
    offload_starved.RULE,
    write_only_tier.RULE,
    read_failure.RULE,
)
"""In the order of the list of codes."""
