"""Neighbours whose requests take the steps: long-prefill sends few long prompts, tenant-flood very many small ones."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kvtrail_engine.drills.base import Drill
from kvtrail_engine.engine import Engine
from kvtrail_engine.request import RequestSpec, Retention

LONG_TENANT = "batch-neighbour"
FLOOD_TENANT = "flood-neighbour"


@dataclass(frozen=True, slots=True)
class Stream:
    """What a neighbour sends: prompts of so many tokens, so far apart. Each is unique, and nobody keeps it."""

    tenant: str
    prompt_tokens: int
    every_s: float


class Neighbour(Drill):
    """Sends a stream of requests while the fault lasts; whoever suffers is somebody else."""

    def __init__(self, name: str, stream: Stream, seed: int, value_of: Callable[[Stream], float]) -> None:
        self.name = name
        self._stream = stream
        self._random = np.random.default_rng((seed, 1))
        self._value = value_of(stream)
        self._sent = 0

    @property
    def value(self) -> float:
        """Tokens of each prompt, or requests a second."""
        return self._value

    def begin(self, engine: Engine) -> None:
        """Send the first one."""
        self._send(engine)

    def tick(self, engine: Engine, elapsed_s: float) -> None:
        """Send what is due."""
        while elapsed_s >= self._sent * self._stream.every_s:
            self._send(engine)

    def end(self, engine: Engine) -> None:
        """Send no more."""

    def _send(self, engine: Engine) -> None:
        """One request."""
        stream = self._stream
        prompt = self._random.integers(0, engine.settings.model.vocabulary, stream.prompt_tokens, dtype=np.int64)
        engine.submit(RequestSpec(f"{stream.tenant}-{self._sent}", prompt, 1, stream.tenant, Retention.NONE))
        self._sent += 1


def long_prefill(seed: int = 0, prompt_tokens: int = 4096, every_s: float = 1.2) -> Neighbour:
    """Now and then a prompt so long that it takes the budget of many steps."""
    stream = Stream(LONG_TENANT, prompt_tokens, every_s)
    return Neighbour("long-prefill", stream, seed, lambda sent: float(sent.prompt_tokens))


def tenant_flood(seed: int = 0, requests_per_s: float = 100.0, prompt_tokens: int = 64) -> Neighbour:
    """So many small prompts that they are most of what is computed."""
    stream = Stream(FLOOD_TENANT, prompt_tokens, 1 / requests_per_s)
    return Neighbour("tenant-flood", stream, seed, lambda sent: 1 / sent.every_s)
