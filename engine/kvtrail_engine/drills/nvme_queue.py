"""nvme-queue: another tenant floods the queue of the nvme tier with bulk reads, in bursts.

Each of its reads takes as long as any other; what grows is the time that everybody waits for a worker.
"""

import numpy as np
from kvtrail_schema.enums import Tier

from kvtrail_engine.drills.guest import Guest
from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import SettingsError
from kvtrail_engine.request import RequestHandle, RequestSpec, Retention

TENANT = "bulk-neighbour"


class NvmeQueue:
    """Bursts of `burst_ops` reads, `every_s` apart, on behalf of a small request that the guest has sent before.

    Needs `EngineSettings.guest_slots` of at least `burst_ops`.
    """

    name = "nvme-queue"
    tier = Tier.NVME

    def __init__(self, seed: int = 0, burst_ops: int = 320, every_s: float = 1.2) -> None:
        self._random = np.random.default_rng((seed, 2))
        self._burst_ops = burst_ops
        self._every_s = every_s
        self._bursts = 0
        self._guest: Guest | None = None
        self._handle: RequestHandle | None = None

    @property
    def value(self) -> float:
        """Reads of one burst."""
        return float(self._burst_ops)

    def prepare(self, engine: Engine) -> None:
        """Send the guest's small request, and store the blocks that will be read."""
        if engine.settings.guest_slots < self._burst_ops:
            message = f"guest_slots is {engine.settings.guest_slots}; nvme-queue needs {self._burst_ops}"
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
        engine.call_on_thread(self._read)

    def _read(self) -> None:
        """On the engine's thread."""
        if self._guest is not None and self._handle is not None:
            self._guest.read(self._burst_ops, self._handle.req)
