"""What endangers data: wrong bytes, wrong order, wrong owner."""

from typing import Final

from kvtrail_collector.detectors.integrity import (
    corrupt_block,
    dst_conflict,
    evict_starved,
    fallback_stalled,
    lease_expired,
    namespace_violation,
    order_violation,
    read_after_invalidate,
    read_after_release,
    read_of_cleared,
    stale_reuse,
)
from kvtrail_collector.detectors.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    corrupt_block.RULE,
    order_violation.RULE,
    dst_conflict.RULE,
    read_after_release.RULE,
    read_after_invalidate.RULE,
    read_of_cleared.RULE,
    lease_expired.RULE,
    evict_starved.RULE,
    namespace_violation.RULE,
    stale_reuse.RULE,
    fallback_stalled.RULE,
)
"""In the order of the list of codes."""
