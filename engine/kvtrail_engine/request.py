"""A request as its sender sees it: what it asks, and a handle on what becomes of it."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import Namespace, RequestId

from kvtrail_engine.tiers.block import DEFAULT_PRIORITY, MAX_PRIORITY, USUAL, Terms

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


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """How dearly, and how long, blocks that touch the tokens [start, stop) are kept; no `stop`: to the prompt's end."""

    priority: int = DEFAULT_PRIORITY
    """From 0 to 100; of several rules for a block the highest one holds."""
    start: int = 0
    stop: int | None = None
    duration_ns: int | None = None
    """The priority holds for so long after the block was computed; then it is the usual one."""
    expires_after_ns: int | None = None
    """Nobody may read the block after this time."""

    def touches(self, start: int, stop: int) -> bool:
        """Whether the rule is for a block of these tokens."""
        return self.start < stop and (self.stop is None or start < self.stop)

    def terms(self, now_ns: int) -> Terms:
        """The terms of a copy that comes to be now."""
        until_ns = None if self.duration_ns is None else now_ns + self.duration_ns
        expires_ns = None if self.expires_after_ns is None else now_ns + self.expires_after_ns
        return Terms(min(max(self.priority, 0), MAX_PRIORITY), until_ns, expires_ns)


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
    namespace: Namespace | None = None
    """The tuple that its KV may not leave; the engine fills in what is empty, the tenant from `tenant`."""
    retention_rules: tuple[RetentionRule, ...] = ()
    supersedes: RequestId | None = None
    """A request that is called off as soon as this one arrives."""

    def terms(self, start: int, stop: int, now_ns: int) -> Terms:
        """On what terms a block of these tokens is kept: the dearest rule's priority, the earliest expiry of all."""
        made = [rule.terms(now_ns) for rule in self.retention_rules if rule.touches(start, stop)]
        if not made:
            return USUAL
        dearest = max(made, key=lambda terms: terms.priority)
        expiries = [terms.expires_ns for terms in made if terms.expires_ns is not None]
        return replace(dearest, expires_ns=min(expiries, default=None))


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
