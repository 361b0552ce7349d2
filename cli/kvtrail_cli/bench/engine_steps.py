"""What a step costs beside what the device computes in it."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from kvtrail_engine.engine import Engine
from kvtrail_engine.request import RequestSpec
from kvtrail_engine.settings import DeviceChoice, EngineSettings, StepSettings
from kvtrail_schema.emitter import Emitter

REQUESTS: Final = 64
OUTPUT_TOKENS: Final = 64


@dataclass(slots=True)
class StepTimes:
    """An observer of steps alone. The engine's thread calls it; it is read once that has ended."""

    started_ns: int = 0
    walls_ns: list[int] = field(default_factory=list)
    devices_ns: list[int] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., int]:
        """Every other kind is forgotten."""
        return _nothing

    def step_started(self, step: int, t_ns: int) -> int:
        """A step begins."""
        del step
        self.started_ns = t_ns
        return 0

    def step_finished(self, *fields: Any) -> int:
        """A step ended: the last two fields are the device's time and the moment."""
        self.devices_ns.append(fields[-2])
        self.walls_ns.append(fields[-1] - self.started_ns)
        return 0


def bench_steps(directory: Path) -> tuple[float, float]:
    """Microseconds of a step, and of the compute in it: medians over a busy run of a tiny model without floors."""
    times = StepTimes()
    settings = EngineSettings(data_dir=directory, device=DeviceChoice.CPU, step=StepSettings(max_sequences=16))
    random = np.random.default_rng(1)
    specs = [RequestSpec(f"b{at}", random.integers(0, 1024, 96, dtype=np.int64), OUTPUT_TOKENS) for at in range(REQUESTS)]
    with Engine(settings, [cast("Emitter", times)]) as engine:
        for handle in [engine.submit(spec) for spec in specs]:
            handle.result(120)
    return statistics.median(times.walls_ns) / 1e3, statistics.median(times.devices_ns) / 1e3


def _nothing(*_args: Any, **_kwargs: Any) -> int:
    """Forget an event."""
    return 0
