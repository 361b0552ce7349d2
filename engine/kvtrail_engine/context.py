"""What the parts of an engine share on its thread: settings, clock, ids, the emitter, pools, memory of the past."""

from dataclasses import dataclass, field

from kvtrail_schema.emitter import Emitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.reasons import BackpressureReason

from kvtrail_engine.backpressure import Pressure
from kvtrail_engine.clock import Clock
from kvtrail_engine.degraded import Degraded
from kvtrail_engine.estimates import Estimator
from kvtrail_engine.history import History
from kvtrail_engine.identity.holdings import Holdings
from kvtrail_engine.ids import Ids
from kvtrail_engine.prefetch_book import PrefetchBook
from kvtrail_engine.settings import EngineSettings
from kvtrail_engine.tiers.pool import TierPool


@dataclass(frozen=True, slots=True)
class Context:
    """Only the engine's thread reads or changes what hangs here; so none of it has a lock, and events keep their order.

    `pools` goes from the fastest tier to the slowest. A tier that is off has no slots; remote is there only where it is set.
    """

    settings: EngineSettings
    clock: Clock
    ids: Ids
    emit: Emitter
    pools: dict[Tier, TierPool]
    history: History
    estimates: Estimator
    pressure: Pressure
    holdings: Holdings
    prefetches: PrefetchBook
    degraded: Degraded = field(default_factory=Degraded)

    @property
    def gpu(self) -> TierPool:
        """The gpu's slots."""
        return self.pools[Tier.GPU]

    @property
    def host(self) -> TierPool:
        """The host's slots."""
        return self.pools[Tier.HOST]

    @property
    def nvme(self) -> TierPool:
        """The slots of the segment files."""
        return self.pools[Tier.NVME]

    @property
    def readable(self) -> list[TierPool]:
        """The tiers below the gpu that are used now, the fastest first: without a lost remote, and disabled ones."""
        is_lost = self.pressure.is_on(BackpressureReason.REMOTE_LOST)
        away = self.degraded.closed | {Tier.GPU} | ({Tier.REMOTE} if is_lost else set())
        return [pool for tier, pool in self.pools.items() if tier not in away]
