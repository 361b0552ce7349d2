"""A request as its sender sees it: what it asks, and a handle on what becomes of it."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import RequestId

Tokens = npt.NDArray[np.int64]


class Outcome(Enum):
    """How a request ended."""

    FINISHED = "finished"
    CANCELLED = "cancelled"
    REJECTED = "rejected"


class Retention(Enum):
    """Whether a prompt's blocks are kept below the gpu."""

    STORE = "store"
    """Written to host, and demoted from there."""
    NONE = "none"
    """Never written: good for prompts that nobody sends twice."""


@dataclass(frozen=True, slots=True, eq=False)
class RequestSpec:
    """One request. `name` is the sender's own id; it stands in the event of its arrival, so let it be no secret."""

    name: str
    prompt: Tokens
    output_tokens: int
    tenant: str = "default"
    retention: Retention = Retention.STORE
    keep_logits: bool = False
    """Keep the logits of the first token in the result, for proofs."""


@dataclass(frozen=True, slots=True, eq=False)
class RequestResult:
    """What became of a request. Times are on the engine's clock; None where the request never got so far."""

    name: str
    req: RequestId
    tenant: str
    outcome: Outcome
    prompt_tokens: int
    arrived_ns: int
    first_token_ns: int | None
    ended_ns: int
    output: tuple[int, ...]
    restored: dict[Tier, int]
    """Blocks that were loaded for it, by the tier that they came from."""
    computed_tokens: int
    first_logits: npt.NDArray[np.float32] | None = None

    @property
    def ttft_ns(self) -> int | None:
        """Time from arrival to the first token."""
        return None if self.first_token_ns is None else self.first_token_ns - self.arrived_ns

    @property
    def tpot_ns(self) -> int | None:
        """Mean time from token to token; None with fewer than two."""
        if self.first_token_ns is None or len(self.output) < 2:  # noqa: PLR2004 - a gap has two ends
            return None
        return (self.ended_ns - self.first_token_ns) // (len(self.output) - 1)


class RequestHandle:
    """Held by the sender. Its result is set by the engine's thread, once."""

    def __init__(self, req: RequestId, spec: RequestSpec, cancel: Callable[[RequestId], None]) -> None:
        self.req = req
        self.spec = spec
        self.future: Future[RequestResult] = Future()
        self._cancel = cancel

    def cancel(self) -> None:
        """Call the request off; returns at once. A request that has ended stays as it ended."""
        self._cancel(self.req)

    def result(self, timeout_s: float | None = None) -> RequestResult:
        """Block until the request has ended.

        Raises:
            TimeoutError: it has not within `timeout_s`.
            EngineFailedError: the engine ended by a defect before.
        """
        return self.future.result(timeout_s)
