"""Figures that lie: impossible, frozen, too good, or never switched on."""

from typing import Final

from kvtrail_collector.detectors.figures import accounting_invalid, config_not_active, counter_dead, hit_rate_exactly_100
from kvtrail_collector.detectors.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    accounting_invalid.RULE,
    counter_dead.RULE,
    hit_rate_exactly_100.RULE,
    config_not_active.RULE,
)
"""In the order of the list of codes."""
