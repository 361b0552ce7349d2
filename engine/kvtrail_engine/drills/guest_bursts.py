"""Another tenant floods the queue of nvme in bursts: with bulk reads, with prefetches that nobody uses, or with writes.

Each op takes as long as any other; what grows is the time that everybody waits for a worker.
"""

from collections.abc import Callable

import numpy as np
from kvtrail_schema.enums import Tier

from kvtrail_engine.drills.base import Drill
from kvtrail_engine.drills.guest import Guest
from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import SettingsError
from kvtrail_engine.request import RequestHandle, RequestSpec, Retention

TENANT = "bulk-neighbour"
Burst = Callable[[Guest, int, RequestHandle], int]


class GuestBursts(Drill):
    """Bursts of `burst_ops` ops, `every_s` apart, on behalf of a small request that the guest has sent before.

    Needs `EngineSettings.guest_slots` of at least `burst_ops`.
    """

    tier = Tier.NVME

    def __init__(self, name: str, burst: Burst, seed: int, burst_ops: int, every_s: float) -> None:
        self.name = name
        self._burst_of = burst
        self._random = np.random.default_rng((seed, 2))
        self._burst_ops = burst_ops
        self._every_s = every_s
        self._bursts = 0
        self._guest: Guest | None = None
        self._handle: RequestHandle | None = None

    @property
    def value(self) -> float:
        """Ops of one burst."""
        return float(self._burst_ops)

    def prepare(self, engine: Engine) -> None:
        """Send the guest's small request, and store the blocks that will be moved."""
        if engine.settings.guest_slots < self._burst_ops:
            message = f"guest_slots is {engine.settings.guest_slots}; {self.name} needs {self._burst_ops}"
            raise SettingsError(message)
        size = engine.settings.block_tokens
        prompt = self._random.integers(0, engine.settings.model.vocabulary, size, dtype=np.int64)
        self._handle = engine.submit(RequestSpec(f"{TENANT}-0", prompt, 1, TENANT, Retention.NONE))
        self._handle.result(timeout_s=60)
        engine.call_on_thread(lambda: self._store(engine))

    def begin(self, engine: Engine) -> None:
        """The first burst."""
        self._burst(engine)

    def tick(self, engine: Engine, elapsed_s: float) -> None:
        """The next burst when it is time."""
        if elapsed_s >= self._bursts * self._every_s:
            self._burst(engine)

    def end(self, engine: Engine) -> None:
        """No more bursts."""

    def _store(self, engine: Engine) -> None:
        """On the engine's thread."""
        if self._handle is not None:
            self._guest = Guest(engine, TENANT)
            self._guest.store(self._handle.req)

    def _burst(self, engine: Engine) -> None:
        """Ask the engine's thread for one burst."""
        self._bursts += 1
        engine.call_on_thread(self._move)

    def _move(self) -> None:
        """On the engine's thread."""
        if self._guest is not None and self._handle is not None:
            self._burst_of(self._guest, self._burst_ops, self._handle)


def nvme_queue(seed: int = 0, burst_ops: int = 180, every_s: float = 0.6) -> GuestBursts:
    """Bulk reads that the neighbour asked for."""
    return GuestBursts("nvme-queue", lambda guest, ops, handle: guest.read(ops, handle.req), seed, burst_ops, every_s)


def prefetch_flood(seed: int = 0, burst_ops: int = 180, every_s: float = 0.6) -> GuestBursts:
    """Reads ahead of a need that never comes."""
    return GuestBursts("prefetch-flood", lambda guest, ops, handle: guest.prefetch(ops, handle.req), seed, burst_ops, every_s)


def write_back_flood(seed: int = 0, burst_ops: int = 180, every_s: float = 0.6) -> GuestBursts:
    """Writes of blocks that lie on host."""
    return GuestBursts("write-back-flood", lambda guest, ops, handle: guest.write(ops, handle.req), seed, burst_ops, every_s)
