"""One op: one hop of some blocks from tier to tier, and what became of it."""

import threading
from dataclasses import dataclass, field
from enum import Enum

from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, EventId, OpId, PrefetchId, RequestId, Slot

from kvtrail_engine.errors import TransferCancelledError
from kvtrail_engine.tiers.pool import Block, Copy


class TransferOutcome(Enum):
    """How an op ended."""

    DONE = "done"
    CHECKSUM = "checksum"
    VERSION = "version"
    """A record of another model version or dtype lies there."""
    PERMISSION = "permission"
    """A record of another namespace or key lies there."""
    EXPIRED = "expired"
    MISSING = "missing"
    IO = "io"
    NO_SPACE = "no_space"
    TIMEOUT = "timeout"
    """The remote did not answer in time; what lies there may still be good."""
    LOST = "lost"
    """The remote cannot be asked; what lies there may still be good."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Row:
    """One block of an op: from this slot of the source to that one of the destination.

    `source` and `target` are the copies; a source is referenced until the op ends.
    """

    block: Block
    source: Copy
    target: Copy
    cause: EventId | None = None


@dataclass(frozen=True, slots=True)
class Estimates:
    """What a decision was made on; None where nothing was known."""

    restore_ns: int | None = None
    recompute_ns: int | None = None
    keep_ns: int | None = None


@dataclass(slots=True)
class Parts:
    """The parts of an op after its queue, in order in time; they add up to the time from its start to its end."""

    alloc_ns: int = 0
    submit_ns: int = 0
    io_ns: int = 0
    copy_ns: int = 0
    sync_ns: int = 0


@dataclass(slots=True, eq=False)
class Transfer:
    """An op on its way. Written by the engine's thread before it is queued, then by its worker, then read by the first.

    `stop` alone is set by the engine's thread while its worker looks at it, and late is harmless: the op ends as done.
    """

    op: OpId
    src: Tier
    dst: Tier
    rows: tuple[Row, ...]
    queued_ns: int
    req: RequestId | None = None
    estimates: Estimates = field(default_factory=Estimates)
    prefetch: PrefetchId | None = None
    """The decision to fetch ahead that the op carries out; None where somebody waits for it, or it is a write."""
    depth: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    """Set while nobody wants the op; it wakes a worker that only waits for its floor."""
    started_ns: int = 0
    ended_ns: int = 0
    parts: Parts = field(default_factory=Parts)
    outcome: TransferOutcome = TransferOutcome.DONE
    detail: str = ""
    faults: dict[BlockId, TransferOutcome] = field(default_factory=dict)
    """Of an op that failed because of some of its blocks, those, and what was wrong with each."""

    def outcome_of(self, row: Row) -> TransferOutcome:
        """How one row ended: where others were at fault, it was called off, and its source is as good as before."""
        return self.faults.get(row.block.id, TransferOutcome.CANCELLED if self.faults else self.outcome)

    def check(self) -> None:
        """Between two blocks, on the worker's thread: go on only while somebody wants the op.

        Raises:
            TransferCancelledError: nobody does.
        """
        if self.stop.is_set():
            message = "called off"
            raise TransferCancelledError(message)

    @property
    def slower(self) -> Tier:
        """The tier whose queue and floor the op goes by."""
        return max(self.src, self.dst)

    @property
    def is_write(self) -> bool:
        """Whether the op goes to the slower tier."""
        return self.dst > self.src

    @property
    def slots(self) -> tuple[tuple[Slot, Slot], ...]:
        """(source, destination) of each row."""
        return tuple((row.source.slot, row.target.slot) for row in self.rows)
