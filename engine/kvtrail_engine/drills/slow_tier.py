"""A tier whose reads take longer in themselves: nvme-slow, and copy-contention on the link between host and device."""

from dataclasses import replace

from kvtrail_schema.enums import Tier

from kvtrail_engine.drills.base import Drill
from kvtrail_engine.engine import Engine
from kvtrail_engine.settings import FloorSettings


class SlowTier(Drill):
    """Raises the read latency of a tier's floor, and puts the floor back as it was."""

    def __init__(self, name: str, tier: Tier, read_latency_ns: int) -> None:
        self.name = name
        self.tier: Tier = tier
        self._read_latency_ns = read_latency_ns
        self._before: FloorSettings | None = None

    @property
    def value(self) -> float:
        """The read latency, in ns."""
        return float(self._read_latency_ns)

    def begin(self, engine: Engine) -> None:
        """Raise the floor."""
        floor = engine.floor_of(self.tier)
        self._before = floor.settings
        floor.settings = replace(floor.settings, read_latency_ns=self._read_latency_ns)

    def end(self, engine: Engine) -> None:
        """Put the floor back."""
        if self._before is not None:
            engine.floor_of(self.tier).settings = self._before
