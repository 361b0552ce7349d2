"""All rules, as data. The codes of population verdicts are in `registry.py`; a code may be in both."""

from typing import Final

from kvtrail_collector.detectors import figures, hangs, integrity, latency, pools, prefetch, reach, stream
from kvtrail_collector.detectors.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    *latency.RULES,
    *prefetch.RULES,
    *reach.RULES,
    *pools.RULES,
    *integrity.RULES,
    *hangs.RULES,
    *stream.RULES,
    *figures.RULES,
)
