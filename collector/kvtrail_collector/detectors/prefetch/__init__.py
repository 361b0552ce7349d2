"""What is fetched ahead, and how that fails."""

from typing import Final

from kvtrail_collector.detectors.prefetch import (
    deadline_ignored,
    deadline_too_long,
    prefetch_alloc_fail,
    prefetch_disabled,
    prefetch_late,
    prefetch_pollution,
    prefetch_ready_delay,
    prefetch_slow,
    prefetch_waste,
)
from kvtrail_collector.detectors.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    prefetch_waste.RULE,
    prefetch_late.RULE,
    prefetch_ready_delay.RULE,
    prefetch_pollution.RULE,
    prefetch_disabled.RULE,
    prefetch_alloc_fail.RULE,
    prefetch_slow.RULE,
    deadline_too_long.RULE,
    deadline_ignored.RULE,
)
"""In the order of the list of codes."""
