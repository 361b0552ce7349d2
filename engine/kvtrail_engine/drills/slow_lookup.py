"""slow-lookup: the index takes long for some requests. Lookups run on the engine's thread, so others wait behind them too."""

import numpy as np

from kvtrail_engine.drills.base import Drill
from kvtrail_engine.engine import Engine
from kvtrail_engine.sequence import Sequence

SLOW_SHARE = 0.08


class SlowLookup(Drill):
    """Sleeps inside the first lookup of one request in twelve; a second attempt at the same request finds the answer ready."""

    name = "slow-lookup"

    def __init__(self, seed: int = 0, stall_ns: int = 120_000_000) -> None:
        self._random = np.random.default_rng((seed, 4))
        self._stall_ns = stall_ns
        self._asked: set[int] = set()  # touched on the engine's thread alone

    @property
    def value(self) -> float:
        """How long a slow lookup takes, in ns."""
        return float(self._stall_ns)

    def begin(self, engine: Engine) -> None:
        """Make the index slow."""
        clock = engine.context.clock

        def stall(sequence: Sequence) -> None:
            if sequence.handle.req not in self._asked:
                self._asked.add(sequence.handle.req)
                if self._random.random() < SLOW_SHARE:
                    clock.sleep_until_ns(clock.now_ns() + self._stall_ns)

        engine.call_on_thread(lambda: setattr(engine.lifecycle.lookup, "stall", stall))

    def end(self, engine: Engine) -> None:
        """Make it as fast as before."""
        engine.call_on_thread(lambda: setattr(engine.lifecycle.lookup, "stall", None))
