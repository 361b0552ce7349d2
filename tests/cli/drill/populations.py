"""Small made populations for tests: the recording that comes with the package, a fault of a given strength."""

import numpy as np
from kvtrail_cli.drill.generated.load import drawn_load
from kvtrail_cli.drill.generated.make import Made
from kvtrail_cli.drill.generated.mechanism import FAULTS, Mechanism, Scene, Span, world_of
from kvtrail_cli.drill.generated.recorded import Recorded
from kvtrail_cli.drill.generated.simulate import simulate


def made(recorded: Recorded, fault: str | None, value: float = 0.0, requests: int = 4000, seed: int = 1) -> Made:
    """A population with this fault in its second half, or with none."""
    rng = np.random.default_rng(seed)
    load = drawn_load(recorded, requests, 1.0, rng)
    first, last = int(load.arrived_ns[0]), int(load.arrived_ns[-1])
    span = Span(first + (last - first) // 2, first + (last - first) * 4 // 5)
    scene = Scene(load, world_of((fault,) if fault else ()), Mechanism(), span)
    if fault is not None:
        scene = FAULTS[fault].strike(scene, span, value, rng)
    return Made(simulate(scene, recorded, rng), span, value)
