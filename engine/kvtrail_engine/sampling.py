"""The state of each tier and the engine's own counters, told a few times a second."""

from collections.abc import Callable, Mapping

from kvtrail_schema.absent import NO_U64
from kvtrail_schema.enums import Tier

from kvtrail_engine.context import Context
from kvtrail_engine.lifecycle import Totals
from kvtrail_engine.tiers.queue import TransferQueue


class Sampler:
    """Runs on the engine's thread; a sample costs microseconds."""

    def __init__(
        self,
        context: Context,
        queues: Mapping[Tier, TransferQueue],
        disk_free_bytes: Callable[[], int],
        totals: Callable[[], Totals],
    ) -> None:
        self._context = context
        self._queues = queues
        self._disk_free_bytes = disk_free_bytes
        self._totals = totals
        self.next_ns = 0

    def sample_if_due(self) -> bool:
        """Tell every tier and every counter once, if the interval has passed; whether it had."""
        now_ns = self._context.clock.now_ns()
        if now_ns < self.next_ns:
            return False
        self.next_ns = now_ns + self._context.settings.sample_interval_ns
        for tier, pool in self._context.pools.items():
            if pool.slots:
                self._sample(tier, now_ns)
        for name, value in self._totals()._asdict().items():
            self._context.emit.counter_sampled(f"kvtrail_engine_{name}_total", float(value), now_ns)
        return True

    def _sample(self, tier: Tier, now_ns: int) -> None:
        """One tier; on nvme the free bytes are the file system's."""
        block_bytes = self._context.settings.block_bytes
        pool = self._context.pools[tier].statistics()
        queue = self._queues[tier].statistics() if tier in self._queues else None
        self._context.emit.capacity_sampled(
            tier,
            pool.slots * block_bytes,
            (pool.slots - pool.free) * block_bytes,
            self._disk_free_bytes() if tier is Tier.NVME else pool.free * block_bytes,
            (pool.slots - pool.free - pool.evictable) * block_bytes,
            pool.evictable * block_bytes,
            0 if queue is None else queue.waiting,
            NO_U64 if queue is None else queue.in_service,
            self._context.prefetches.pending(tier) if self._context.settings.prefetch.is_on else NO_U64,
            t_ns=now_ns,
        )
