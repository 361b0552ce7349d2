"""Memory pools and disks: how they fill, leak and forget."""

from typing import Final

from kvtrail_collector.detectors.pools import (
    accounting_reset,
    ack_starved,
    cap_exceeded,
    disk_fill,
    host_tier_too_big,
    orphans,
    pin_failed,
    pin_leak,
    pinned_pool_deadlock,
    pool_fragmented,
    refcount_negative,
    tmp_leak,
)
from kvtrail_collector.detectors.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    pinned_pool_deadlock.RULE,
    pin_leak.RULE,
    pin_failed.RULE,
    refcount_negative.RULE,
    pool_fragmented.RULE,
    ack_starved.RULE,
    host_tier_too_big.RULE,
    disk_fill.RULE,
    cap_exceeded.RULE,
    accounting_reset.RULE,
    orphans.RULE,
    tmp_leak.RULE,
)
"""In the order of the list of codes."""
