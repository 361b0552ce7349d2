"""The stream of events itself: what is missing, doubled, or cannot be."""

from typing import Final

from kvtrail_collector.detectors.rule import Rule
from kvtrail_collector.detectors.stream import (
    clock_step,
    gap,
    ghost,
    hash_collision,
    hash_seed_mismatch,
    ingest_loss,
    malformed,
    observer_backpressure,
    observer_cost,
    orphan_chain,
    parent_missing,
    ranks_missing,
    schema_unknown,
    seq_interleaved,
    tier_blind,
)

RULES: Final[tuple[Rule, ...]] = (
    gap.RULE,
    ingest_loss.RULE,
    orphan_chain.RULE,
    parent_missing.RULE,
    ghost.RULE,
    malformed.RULE,
    ranks_missing.RULE,
    seq_interleaved.RULE,
    hash_collision.RULE,
    hash_seed_mismatch.RULE,
    schema_unknown.RULE,
    tier_blind.RULE,
    observer_backpressure.RULE,
    observer_cost.RULE,
    clock_step.RULE,
)
"""In the order of the list of codes."""
