"""Names of counters (`counter_sampled`) that kvtrail itself reads."""

from typing import Final

RECORDER_COST: Final = "kvtrail_recorder_ns_total"
"""The nanoseconds that recording took of an engine's time since its recorder started; only grows."""
