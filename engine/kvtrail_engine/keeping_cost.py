"""Who makes room on the gpu, by what it costs others: of the copies whose turn it is soon, those cheapest to have again."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kvtrail_schema.enums import Tier

from kvtrail_engine.context import Context
from kvtrail_engine.tiers.block import Copy, CopyState


@dataclass(frozen=True, slots=True)
class Room:
    """The copies that leave for a request, in the order in which they go, and what their loss costs others."""

    victims: tuple[Copy, ...] = ()
    keep_ns: int = 0


class KeepingCost:
    """Runs on the engine's thread; changes nothing. Costs a look at each tier for each copy that it considers.

    Lower priority leaves first, always. Of those whose priority decides last the least recently used leave, but for
    `keep_lookahead` more that are looked at beside them: what would have to be computed again stays, and what a slower tier
    can give back leaves in its place.
    """

    def __init__(self, context: Context) -> None:
        self._context = context

    def room(self, count: int, wanted: Sequence[Copy]) -> Room:
        """The copies to evict for so many slots; none of those that the request itself is about to use."""
        if count <= 0:
            return Room()
        most, hits = count + self._context.settings.keep_lookahead, set(wanted)
        seen = [copy for copy in self._context.gpu.victims(most + len(hits)) if copy not in hits][:most]
        victims = self._cheapest(seen, count)
        return Room(victims, self._sum_ns(victims))

    def _cheapest(self, seen: list[Copy], count: int) -> tuple[Copy, ...]:
        """So many of the copies seen: those below the last one's priority, and the cheapest ones of its priority."""
        if len(seen) <= count:
            return tuple(seen)
        last = seen[count - 1].terms.priority
        sure = [copy for copy in seen[:count] if copy.terms.priority != last]
        equal = [copy for copy in seen if copy.terms.priority == last]
        equal.sort(key=self._again_ns)
        return (*sure, *equal[: count - len(sure)])

    def _stored_in(self, copy: Copy) -> Tier | None:
        """The fastest tier below the gpu that can give the block back."""
        for pool in self._context.readable:
            stored = pool.find(copy.block.id)
            if stored is not None and stored.state is CopyState.READY:
                return pool.tier
        return None

    def _again_ns(self, copy: Copy) -> int:
        """What it costs to have a copy again: to restore it, or to compute it where no tier has it."""
        tier, costs = self._stored_in(copy), self._context.estimates
        return costs.keep_ns({} if tier is None else {tier: 1}, tier is None)

    def _sum_ns(self, copies: Sequence[Copy]) -> int:
        """What it costs to have all of them again."""
        tiers = Counter(tier for copy in copies if (tier := self._stored_in(copy)) is not None)
        return self._context.estimates.keep_ns(tiers, len(copies) - tiers.total())
