"""What one request's events say, as intervals and states: the input of the ledger (LEDGER §1).

Facts are values without behaviour. They are built from events or from the columns of the store by `facts_build.py`,
which never passes on what a drill injected. All times are nanoseconds on the monotonic clock of `t_ns`; all intervals
are half-open, [start, end).
"""

from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import msgspec
from kvtrail_schema.enums import Reason, Tier
from kvtrail_schema.identity import NamespaceId, OpId, PrefetchId, RequestId, Seq, Stream

Interval = tuple[int, int]


class EndKind(Enum):
    """How the interval of a request's ledger ends; anything but a first token makes it censored."""

    FIRST_TOKEN = "first_token"  # noqa: S105 - a token of text, not a secret
    FINISHED = "finished"
    CANCELLED = "cancelled"
    REJECTED = "rejected"
    RUNNING = "running"


class OpEnd(Enum):
    """How an op ended; an open one has no closing event (yet)."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    OPEN = "open"


class Direction(Enum):
    """Whether an op brings data towards the device or away from it."""

    LOAD = "load"
    STORE = "store"


class State(Enum):
    """What the scheduler holds of a request."""

    WAITING = "waiting"
    ADMITTED = "admitted"
    PREEMPTED = "preempted"


class StateChange(NamedTuple):
    """From `t_ns` on a request is in this state, for this reason where one was given."""

    t_ns: int
    state: State
    reason: Reason | None


class Lookup(NamedTuple):
    """An index was asked during [start, end)."""

    start_ns: int
    end_ns: int


class Chunk(NamedTuple):
    """Prompt tokens computed in the step [start, end); where the start is not known the step's events were lost."""

    start_ns: int
    end_ns: int
    tokens: int
    reason: Reason
    start_known: bool


class Wait(NamedTuple):
    """The request stood still in [start, end) for one op, or for all of its loads where none is named."""

    start_ns: int
    end_ns: int
    op: OpId | None


class Op(msgspec.Struct, frozen=True, gc=False):
    """One hop of one transfer with its six parts, in this order in time from `queued_ns` on (EVENTS §3)."""

    op: OpId
    stream: int
    direction: Direction
    src: Tier
    dst: Tier
    end: OpEnd
    queued_ns: int
    started_ns: int | None
    closing_ns: int | None
    queue_ns: int
    alloc_ns: int
    submit_ns: int
    io_ns: int
    copy_ns: int
    sync_ns: int
    bytes: int
    req: RequestId | None
    prefetch: PrefetchId | None
    ns: NamespaceId | None
    queue: int | None
    seq: Seq

    @property
    def tier(self) -> Tier:
        """The tier that an op is charged to: its slower end."""
        return max(self.src, self.dst)


@dataclass(frozen=True, slots=True)
class Timeline:
    """What all requests of one stream share: its steps, and the holes in its seq as intervals of time.

    `busy` are the merged intervals in which some step ran, `busy_before_ns` the total that ran before each of them.
    `unknown` are steps whose end was lost: whether a step ran there cannot be known.
    """

    stream: Stream
    busy: tuple[Interval, ...]
    busy_starts_ns: tuple[int, ...]
    busy_before_ns: tuple[int, ...]
    unknown: tuple[Interval, ...]
    holes: tuple[Interval, ...]
    last_ns: int

    def busy_until_ns(self, t_ns: int) -> int:
        """How long steps ran before an instant."""
        place = bisect_right(self.busy_starts_ns, t_ns) - 1
        if place < 0:
            return 0
        start, end = self.busy[place]
        return self.busy_before_ns[place] + min(t_ns, end) - start

    def busy_ns(self, start_ns: int, end_ns: int) -> int:
        """How long steps ran within an interval."""
        return self.busy_until_ns(end_ns) - self.busy_until_ns(start_ns)


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """All that is known of one request between its arrival and its first token (or what ended it before that).

    `shared_ops` were begun for others; the request waited for them too, and said so by name.
    """

    request: RequestId
    text: str | None
    ns: NamespaceId | None
    tokens: int
    arrived_seq: Seq
    arrived_ns: int
    end_ns: int
    end: EndKind
    states: tuple[StateChange, ...]
    lookups: tuple[Lookup, ...]
    ops: tuple[Op, ...]
    chunks: tuple[Chunk, ...]
    waits: tuple[Wait, ...]
    timeline: Timeline
    shared_ops: tuple[Op, ...] = ()

    @property
    def censored(self) -> bool:
        """Whether no first token was seen."""
        return self.end is not EndKind.FIRST_TOKEN

    @property
    def label(self) -> str:
        """The name people know a request by: the engine's own id, else its number."""
        return self.text or str(self.request)
