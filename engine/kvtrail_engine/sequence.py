"""A request as the engine's thread sees it: where it stands, what it holds, what is left to compute."""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import EventId, OpId, Slot
from kvtrail_schema.reasons import CancelReason, PrefillReason, WaitReason

from kvtrail_engine.namespaces import Identity
from kvtrail_engine.request import RequestHandle
from kvtrail_engine.tiers.pool import Block, Copy


class Phase(Enum):
    """Where a sequence stands; only the engine's thread moves it."""

    WAITING = "waiting"
    """For a place, room or a queue."""
    LOADING = "loading"
    """For its restore."""
    PREFILL = "prefill"
    """Its prompt is computed, or would be if there were budget."""
    DECODE = "decode"
    """It gets a token from each step."""
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class Sequence:
    """Everything about one request inside the engine; no other thread sees it."""

    handle: RequestHandle
    identity: Identity
    arrived_ns: int
    blocks: tuple[Block, ...]
    """The full blocks of the prompt, in order."""
    block_tokens: int
    phase: Phase = Phase.WAITING
    wait_reason: WaitReason | None = None
    decision: EventId | None = None
    """The id of the restore or recompute decision: it is the cause of the evictions that make room."""
    slots: list[Slot] = field(default_factory=list)
    """The gpu slot of each block of prompt and output."""
    held: dict[int, Copy] = field(default_factory=dict)
    """Block index to the gpu copy that is referenced there."""
    todo: deque[int] = field(default_factory=deque)
    """Indexes of the prompt's blocks to compute, in order."""
    reasons: dict[int, PrefillReason] = field(default_factory=dict)
    """Why a block is computed, where it is not new."""
    failures: dict[int, PrefillReason] = field(default_factory=dict)
    """Blocks whose load failed, and how; outlives a new preparation."""
    loading: set[OpId] = field(default_factory=set)
    loading_since_ns: int = 0
    unread: list[Copy] = field(default_factory=list)
    """Copies that it references and whose first read was not told yet."""
    created: list[Copy] = field(default_factory=list)
    """Blocks that it computed and that nobody saved yet."""
    is_admitted: bool = False
    is_decoding: bool = False
    is_in_step: bool = False
    cancel_asked: CancelReason | None = None
    """Set once it is to end without an answer; it ends as soon as no step computes for it."""
    output: list[int] = field(default_factory=list)
    first_token_ns: int | None = None
    restored: dict[Tier, int] = field(default_factory=dict)
    computed_tokens: int = 0
    first_logits: npt.NDArray[np.float32] | None = None

    @property
    def owner(self) -> str:
        """The tenant whose quotas it counts against."""
        return self.identity.namespace.tenant

    @property
    def prompt_tokens(self) -> int:
        """Length of the prompt."""
        return len(self.handle.spec.prompt)

    @property
    def total_blocks(self) -> int:
        """Blocks that prompt and output need together."""
        return -(-(self.prompt_tokens + self.handle.spec.output_tokens) // self.block_tokens)

    @property
    def reusable_blocks(self) -> int:
        """Full blocks that may come from a cache: at least the prompt's last token is computed, for its logits."""
        return (self.prompt_tokens - 1) // self.block_tokens

    @property
    def prompt_blocks(self) -> int:
        """Blocks of the prompt, the last one perhaps in part."""
        return -(-self.prompt_tokens // self.block_tokens)

    def chunk(self, index: int) -> tuple[int, int]:
        """Start and end of a block's tokens within the prompt."""
        start = index * self.block_tokens
        return start, min(start + self.block_tokens, self.prompt_tokens)

    def todo_tokens(self) -> int:
        """Prompt tokens that are still to be computed."""
        return sum(stop - start for start, stop in map(self.chunk, self.todo))
