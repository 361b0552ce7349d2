"""Room taken away: host-pressure shrinks the host pool, so that blocks go to nvme early; thrash shrinks every pool."""

from collections.abc import Mapping

from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import Slot

from kvtrail_engine.drills.base import Drill
from kvtrail_engine.engine import Engine

OWNER = "ballast"
EVICTIONS_A_TICK = 512


class Ballast(Drill):
    """Holds a share of the slots of some pools. Blocks of host move to nvme, unless nvme shrinks too; others are evicted."""

    def __init__(self, name: str, shares: Mapping[Tier, float]) -> None:
        self.name = name
        self.tier = next(iter(shares)) if len(shares) == 1 else None
        self._shares = dict(shares)
        self._held: dict[Tier, list[Slot]] = {tier: [] for tier in shares}  # touched on the engine's thread alone
        self._is_over = False  # touched on the engine's thread alone

    @property
    def value(self) -> float:
        """The largest share that is taken."""
        return max(self._shares.values())

    def begin(self, engine: Engine) -> None:
        """Take what can be taken at once."""
        engine.call_on_thread(lambda: self._take(engine))

    def tick(self, engine: Engine, elapsed_s: float) -> None:
        """Take what became free since."""
        del elapsed_s
        engine.call_on_thread(lambda: self._take(engine))

    def end(self, engine: Engine) -> None:
        """Give everything back."""
        engine.call_on_thread(lambda: self._give_back(engine))

    def _take(self, engine: Engine) -> None:
        """On the engine's thread: as much of each pool as is wanted and nobody uses, a bounded number at a time."""
        if self._is_over:
            return
        for tier, share in self._shares.items():
            wanted = int(engine.context.pools[tier].slots * share) - len(self._held[tier])
            if tier is Tier.HOST and Tier.NVME not in self._shares:
                self._take_demoting(engine, wanted)
            else:
                self._take_evicting(engine, tier, min(wanted, EVICTIONS_A_TICK))

    def _take_demoting(self, engine: Engine, wanted: int) -> None:
        """Free slots of host, while its blocks move down to make more."""
        pool, low_slots = engine.context.host, engine.settings.host_low_slots
        for _ in range(min(wanted, pool.free)):
            slot = pool.take(OWNER)
            if slot is not None:
                self._held[Tier.HOST].append(slot)
        engine.lifecycle.saving.demote_from(Tier.HOST, low_slots)

    def _take_evicting(self, engine: Engine, tier: Tier, wanted: int) -> None:
        """Slots of a tier; whatever lies there and is not in use goes."""
        for _ in range(wanted):
            slot = engine.lifecycle.residency.take_slot(tier, owner=OWNER)
            if slot is None:
                return
            self._held[tier].append(slot)

    def _give_back(self, engine: Engine) -> None:
        """On the engine's thread."""
        self._is_over = True
        for tier, slots in self._held.items():
            for slot in slots:
                engine.context.pools[tier].give_back(slot)
            slots.clear()


def host_pressure(share: float = 0.9) -> Ballast:
    """Somebody takes most of the host pool."""
    return Ballast("host-pressure", {Tier.HOST: share})


def thrash(share: float = 0.9) -> Ballast:
    """Every pool holds less than is in use; the lower ones next to nothing."""
    return Ballast("thrash", {Tier.GPU: share * share, Tier.HOST: share, Tier.NVME: 1 - (1 - share) ** 2})
