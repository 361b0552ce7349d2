"""long-prefill: a neighbour sends, now and then, a prompt so long that it takes the budget of many steps."""

import numpy as np

from kvtrail_engine.engine import Engine
from kvtrail_engine.request import RequestSpec, Retention

TENANT = "batch-neighbour"


class LongPrefill:
    """Few and long, so that those who suffer are the others. Each prompt is unique, and nobody keeps it."""

    name = "long-prefill"
    tier = None

    def __init__(self, seed: int = 0, prompt_tokens: int = 4096, every_s: float = 2.5) -> None:
        self._random = np.random.default_rng((seed, 1))
        self._prompt_tokens = prompt_tokens
        self._every_s = every_s
        self._sent = 0

    @property
    def value(self) -> float:
        """Tokens of each prompt."""
        return float(self._prompt_tokens)

    def prepare(self, engine: Engine) -> None:
        """Nothing."""

    def begin(self, engine: Engine) -> None:
        """Send the first one."""
        self._send(engine)

    def tick(self, engine: Engine, elapsed_s: float) -> None:
        """Send the next one when it is time."""
        if elapsed_s >= self._sent * self._every_s:
            self._send(engine)

    def end(self, engine: Engine) -> None:
        """Send no more."""

    def _send(self, engine: Engine) -> None:
        """One long prompt."""
        prompt = self._random.integers(0, engine.settings.model.vocabulary, self._prompt_tokens, dtype=np.int64)
        spec = RequestSpec(f"{TENANT}-{self._sent}", prompt, 1, TENANT, Retention.NONE)
        self._sent += 1
        engine.submit(spec)
