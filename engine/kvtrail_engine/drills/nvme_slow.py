"""nvme-slow: each read from nvme takes longer in itself; nobody's queue grows while there are workers to spare."""

from dataclasses import replace

from kvtrail_schema.enums import Tier

from kvtrail_engine.engine import Engine
from kvtrail_engine.settings import FloorSettings

DEFAULT_READ_LATENCY_NS = 250_000_000


class NvmeSlow:
    """Raises the read latency of the nvme tier's floor, and puts the floor back as it was."""

    name = "nvme-slow"
    tier = Tier.NVME

    def __init__(self, read_latency_ns: int = DEFAULT_READ_LATENCY_NS) -> None:
        self._read_latency_ns = read_latency_ns
        self._before: FloorSettings | None = None

    @property
    def value(self) -> float:
        """The read latency, in ns."""
        return float(self._read_latency_ns)

    def prepare(self, engine: Engine) -> None:
        """Nothing."""

    def begin(self, engine: Engine) -> None:
        """Raise the floor."""
        floor = engine.floor_of(Tier.NVME)
        self._before = floor.settings
        floor.settings = replace(floor.settings, read_latency_ns=self._read_latency_ns)

    def tick(self, engine: Engine, elapsed_s: float) -> None:
        """Nothing."""

    def end(self, engine: Engine) -> None:
        """Put the floor back."""
        if self._before is not None:
            engine.floor_of(Tier.NVME).settings = self._before
