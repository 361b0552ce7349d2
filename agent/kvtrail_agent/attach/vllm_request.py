"""What is kept of one request of vLLM while it lives."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, NamespaceId, OpId, RequestId
from kvtrail_schema.reasons import PrefillReason, WaitReason


class Phase(Enum):
    """Where the scheduler has a request."""

    WAITING = "waiting"
    LOADING = "loading"
    RUNNING = "running"
    PREEMPTED = "preempted"


@dataclass(slots=True)
class Lookup:
    """The last answer for a request: tokens on the GPU, tokens in the inner connector, and whether those come by themselves."""

    gpu_tokens: int
    outer_tokens: int
    tier: Tier
    is_async: bool


@dataclass(slots=True)
class Load:
    """One load by the inner connector that has not ended."""

    op: OpId
    tier: Tier
    blocks: list[BlockId]
    slots: list[int]
    tokens: int
    queued_ns: int
    is_async: bool
    begun_ns: int = 0


@dataclass(slots=True)
class Watched:
    """A request. `request` is vLLM's own object, read and never written."""

    req: RequestId
    ns: NamespaceId
    request: Any
    phase: Phase = Phase.WAITING
    reason: WaitReason | None = None
    admitted: bool = False
    answered: bool = False
    """Whether its first token was told."""
    outputs: int = 0
    """Output tokens that were told."""
    prefill_end: int = 0
    """Tokens up to here are prefilled, not decoded."""
    prefill_reason: PrefillReason = PrefillReason.NEW
    again: list[tuple[int, int]] = field(default_factory=list)
    """Stretches of tokens that the GPU had once and evicted since."""
    lookup: Lookup | None = None
    load: Load | None = None
    outer: tuple[int, int] = (0, 0)
    """The stretch of tokens that the inner connector brings."""
