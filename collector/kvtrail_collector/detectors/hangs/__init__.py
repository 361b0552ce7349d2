"""What has stopped and does not say so."""

from typing import Final

from kvtrail_collector.detectors.hangs import agent_dead, engine_stall, leak_by_stuck_loads, load_stuck, stuck_load
from kvtrail_collector.detectors.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    stuck_load.RULE,
    leak_by_stuck_loads.RULE,
    load_stuck.RULE,
    engine_stall.RULE,
    agent_dead.RULE,
)
"""In the order of the list of codes."""
