"""What an operator, a drill or a proof may do to the tiers by hand."""

from collections.abc import Mapping

from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId
from kvtrail_schema.reasons import EvictReason

from kvtrail_engine.context import Context
from kvtrail_engine.residency import Residency
from kvtrail_engine.runtime.arena import Arena
from kvtrail_engine.saving import Saving


class Maintenance:
    """Runs on the engine's thread (`Engine.ask`)."""

    def __init__(self, context: Context, residency: Residency, saving: Saving, arenas: Mapping[Tier, Arena]) -> None:
        self._context = context
        self._residency = residency
        self._saving = saving
        self._arenas = arenas

    def clear(self, tier: Tier) -> int:
        """End every copy in a tier that nobody uses, each with its own event; how many there were. Copies in use stay."""
        pool, count = self._context.pools[tier], 0
        while (copy := pool.victim()) is not None:
            self._residency.evict(copy, EvictReason.CLEAR)
            count += 1
        return count

    def demote_all(self, tier: Tier = Tier.HOST) -> None:
        """Queue the move of every idle block of a tier to the next slower one; returns before they are moved."""
        self._saving.demote_from(tier, self._context.pools[tier].slots)

    def swap(self, tier: Tier, first: BlockId, second: BlockId) -> None:
        """Exchange the data of two blocks in gpu or host and nothing else: a defect on purpose.

        Raises:
            KeyError: one of the blocks has no copy there.
        """
        pool = self._context.pools[tier]
        copies = [pool.find(block) for block in (first, second)]
        places = [copy.slot for copy in copies if copy is not None]
        if len(places) != len(copies):
            message = f"both blocks must have a copy in {tier.name}"
            raise KeyError(message)
        self._arenas[tier].swap(places[0], places[1])
