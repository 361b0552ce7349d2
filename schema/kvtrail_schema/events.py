"""Every fact that kvtrail records, one class a kind: the tagged union of EVENTS §2.

Read this file first. A class names a past fact; fields without a default are required; a field means the same thing and
has the same type on every kind (`columns.py` pins its width). Times end in `_ns`, sizes in `_bytes`, counts of tokens
are `tokens*`. Events are values: pure, frozen, comparable. They never hold tokens, prompts or names in clear.

To add a kind: add its class here, its number at the end of `Kind` in `kinds.py`, then run `make generate`.
"""

import re

import msgspec

from kvtrail_schema.enums import Dtype, Path, Stage, Tier
from kvtrail_schema.identity import BlockId, EventId, NamespaceId, OpId, PrefetchId, RequestId, Slot, StepId
from kvtrail_schema.reasons import (
    AdmissionReason,
    AgentReason,
    BackpressureReason,
    CancelReason,
    ClearReason,
    DropReason,
    ErrorReason,
    EvictReason,
    FinishReason,
    InvalidateReason,
    MissReason,
    OrphanReason,
    PreemptReason,
    PrefetchCancelReason,
    PrefetchSkipReason,
    PrefetchWasteReason,
    PrefillReason,
    RejectReason,
    SampleReason,
    SwapInFailReason,
    SwapOutFailReason,
    SwapOutSkipReason,
    WaitReason,
)


def _kind_name(class_name: str) -> str:
    """`SwapInLoaded` is `swap_in_loaded` wherever people read it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", class_name).lower()


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag=_kind_name):
    """What all events share: the place in their stream, and the moment at which the fact became true.

    `seq` is handed out by the recorder at emit, before anything can be dropped, and counts from 1 within a stream.
    `t_ns` is the monotonic clock of the emitting process. Both are 0 in an event that was not emitted yet.
    """

    seq: int = 0
    t_ns: int = 0


class TransferEnd(Event, frozen=True, kw_only=True):
    """The parts of one op, in this order in time, on the first row of its closing kind only (EVENTS §3)."""

    queue_ns: int | None = None
    alloc_ns: int | None = None
    submit_ns: int | None = None
    io_ns: int | None = None
    copy_ns: int | None = None
    sync_ns: int | None = None


# --- requests


class RequestArrived(Event, frozen=True, kw_only=True):
    """A request reached the engine; its ledger starts here. `tokens` is the prompt's length, `text` the engine's own id."""

    req: RequestId
    tokens: int
    ns: NamespaceId | None = None
    text: str | None = None
    trace_id: str | None = None
    priority: int | None = None
    deadline_ns: int | None = None


class RequestWaiting(Event, frozen=True, kw_only=True):
    """A request is not running, for this reason; one event at each change of reason."""

    req: RequestId
    reason: WaitReason


class RequestAdmitted(Event, frozen=True, kw_only=True):
    """A request was scheduled for the first time."""

    req: RequestId
    step: StepId | None = None


class RequestPreempted(Event, frozen=True, kw_only=True):
    """A running request lost its place."""

    req: RequestId
    reason: PreemptReason | None = None
    step: StepId | None = None


class RequestResumed(Event, frozen=True, kw_only=True):
    """A preempted request runs again."""

    req: RequestId
    reason: PreemptReason | None = None
    step: StepId | None = None


class RequestFirstToken(Event, frozen=True, kw_only=True):
    """The first output token exists; the TTFT ledger ends here."""

    req: RequestId
    step: StepId | None = None


class RequestFinished(Event, frozen=True, kw_only=True):
    """A request ended well with `tokens` output tokens."""

    req: RequestId
    tokens: int
    reason: FinishReason | None = None


class RequestCancelled(Event, frozen=True, kw_only=True):
    """A request was called off."""

    req: RequestId
    reason: CancelReason


class RequestRejected(Event, frozen=True, kw_only=True):
    """A request was refused."""

    req: RequestId
    reason: RejectReason


# --- steps and tokens


class StepStarted(Event, frozen=True, kw_only=True):
    """A scheduler iteration began."""

    step: StepId


class StepFinished(Event, frozen=True, kw_only=True):
    """A scheduler iteration ended; tokens are totals of its batch, `device_ns` the time that the device computed."""

    step: StepId
    tokens: int
    prefill_tokens: int | None = None
    decode_tokens: int | None = None
    device_ns: int | None = None


class PrefillChunk(Event, frozen=True, kw_only=True):
    """Prompt tokens of a request were computed in a step; emitted when the step ends."""

    req: RequestId
    step: StepId
    tokens: int
    reason: PrefillReason
    token_start: int | None = None


class DecodeJoined(Event, frozen=True, kw_only=True):
    """From this step on a request gets one token per finished step."""

    req: RequestId
    step: StepId


class DecodeLeft(Event, frozen=True, kw_only=True):
    """A request gets no more tokens from steps."""

    req: RequestId
    step: StepId


class TokensEmitted(Event, frozen=True, kw_only=True):
    """A step gave a request other than one token: 0 skipped, more than 1 speculative."""

    req: RequestId
    step: StepId
    tokens: int


class CopyWaited(Event, frozen=True, kw_only=True):
    """The request, or the compute stream on its behalf, stood still for a copy; the wait ends at `t_ns`."""

    req: RequestId
    wait_ns: int
    op: OpId | None = None
    step: StepId | None = None
    tier: Tier | None = None


# --- lookups and blocks


class LookupFinished(Event, frozen=True, kw_only=True):
    """An index was asked for `tokens` tokens (all tiers where `tier` is absent); the answer by tier."""

    req: RequestId
    duration_ns: int
    tokens: int
    tier: Tier | None = None
    tokens_gpu: int | None = None
    tokens_host: int | None = None
    tokens_nvme: int | None = None
    tokens_remote: int | None = None


class PrefixHit(Event, frozen=True, kw_only=True):
    """A block of a request's prefix was found in a tier."""

    req: RequestId
    block: BlockId
    tier: Tier
    tokens: int | None = None
    ns: NamespaceId | None = None


class PrefixMiss(Event, frozen=True, kw_only=True):
    """A block of a request's prefix was not usable; `cause` is the eviction or invalidation that took it."""

    req: RequestId
    block: BlockId
    reason: MissReason
    tokens: int | None = None
    cause: EventId | None = None
    ns: NamespaceId | None = None


class BlockCreated(Event, frozen=True, kw_only=True):
    """A block was computed into a place."""

    block: BlockId
    tier: Tier
    slot: Slot
    ns: NamespaceId | None = None
    parent: BlockId | None = None
    req: RequestId | None = None
    tokens: int | None = None
    token_start: int | None = None
    bytes: int | None = None
    dtype: Dtype | None = None
    priority: int | None = None


class AttentionRead(Event, frozen=True, kw_only=True):
    """A request read a copy for the first time since it became readable to it; never per step."""

    req: RequestId
    block: BlockId
    tier: Tier
    slot: Slot
    ns: NamespaceId | None = None


class BlockPinned(Event, frozen=True, kw_only=True):
    """A copy gained a reference; `refs` after the change."""

    block: BlockId
    tier: Tier
    slot: Slot
    refs: int
    req: RequestId | None = None
    ns: NamespaceId | None = None


class BlockUnpinned(Event, frozen=True, kw_only=True):
    """A copy lost a reference; `refs` after the change."""

    block: BlockId
    tier: Tier
    slot: Slot
    refs: int
    req: RequestId | None = None
    ns: NamespaceId | None = None


class Evicted(Event, frozen=True, kw_only=True):
    """A copy left its place, having been idle for `duration_ns`."""

    block: BlockId
    tier: Tier
    slot: Slot
    reason: EvictReason
    id: EventId | None = None
    cause: EventId | None = None
    bytes: int | None = None
    priority: int | None = None
    duration_ns: int | None = None
    op: OpId | None = None
    ns: NamespaceId | None = None


class TierCleared(Event, frozen=True, kw_only=True):
    """Every copy in a tier (of one namespace, where named) ended."""

    tier: Tier
    reason: ClearReason
    id: EventId | None = None
    ns: NamespaceId | None = None


class InvalidationRequested(Event, frozen=True, kw_only=True):
    """Blocks were forbidden by a selector; `text` holds it with hashed values."""

    id: EventId
    reason: InvalidateReason
    text: str | None = None


class Invalidated(Event, frozen=True, kw_only=True):
    """A copy was taken away for good by an invalidation."""

    block: BlockId
    tier: Tier
    slot: Slot
    reason: InvalidateReason
    cause: EventId
    ns: NamespaceId | None = None


# --- transfers: one op is one hop, one row a block, the six parts on the first row only


class SwapOutQueued(Event, frozen=True, kw_only=True):
    """A write to a slower tier entered its queue; `slot` is the destination."""

    op: OpId
    src: Tier
    dst: Tier
    block: BlockId | None = None
    slot: Slot | None = None
    bytes: int | None = None
    req: RequestId | None = None
    prefetch: PrefetchId | None = None
    depth: int | None = None
    cause: EventId | None = None
    queue: int | None = None
    ns: NamespaceId | None = None


class SwapOutStarted(Event, frozen=True, kw_only=True):
    """A write to a slower tier went into service."""

    op: OpId
    src: Tier
    dst: Tier
    block: BlockId | None = None
    slot: Slot | None = None
    bytes: int | None = None
    req: RequestId | None = None
    prefetch: PrefetchId | None = None
    depth: int | None = None
    cause: EventId | None = None
    queue: int | None = None
    ns: NamespaceId | None = None


class SwapOutWritten(TransferEnd, frozen=True, kw_only=True):
    """A write is durable or, for host, readable."""

    op: OpId
    src: Tier
    dst: Tier
    block: BlockId | None = None
    slot: Slot | None = None
    bytes: int | None = None
    tokens: int | None = None
    req: RequestId | None = None
    path: Path | None = None
    pinned: bool | None = None
    numa: int | None = None
    device_numa: int | None = None
    ns: NamespaceId | None = None


class SwapOutFailed(TransferEnd, frozen=True, kw_only=True):
    """A write to a slower tier failed."""

    op: OpId
    src: Tier
    dst: Tier
    reason: SwapOutFailReason
    block: BlockId | None = None
    bytes: int | None = None
    req: RequestId | None = None
    ns: NamespaceId | None = None


class SwapOutSkipped(Event, frozen=True, kw_only=True):
    """A write to a slower tier was not made."""

    op: OpId
    src: Tier
    dst: Tier
    reason: SwapOutSkipReason
    block: BlockId | None = None
    bytes: int | None = None
    req: RequestId | None = None
    ns: NamespaceId | None = None


class SwapInQueued(Event, frozen=True, kw_only=True):
    """A load entered its queue; estimates are the op's, on its first row."""

    op: OpId
    src: Tier
    dst: Tier
    block: BlockId | None = None
    slot: Slot | None = None
    bytes: int | None = None
    req: RequestId | None = None
    prefetch: PrefetchId | None = None
    depth: int | None = None
    cause: EventId | None = None
    queue: int | None = None
    restore_estimate_ns: int | None = None
    recompute_estimate_ns: int | None = None
    keep_estimate_ns: int | None = None
    ns: NamespaceId | None = None


class SwapInStarted(Event, frozen=True, kw_only=True):
    """A load went into service."""

    op: OpId
    src: Tier
    dst: Tier
    block: BlockId | None = None
    slot: Slot | None = None
    bytes: int | None = None
    req: RequestId | None = None
    prefetch: PrefetchId | None = None
    depth: int | None = None
    cause: EventId | None = None
    queue: int | None = None
    restore_estimate_ns: int | None = None
    recompute_estimate_ns: int | None = None
    keep_estimate_ns: int | None = None
    ns: NamespaceId | None = None


class SwapInLoaded(TransferEnd, frozen=True, kw_only=True):
    """A load is complete; the copy is readable from here on."""

    op: OpId
    src: Tier
    dst: Tier
    block: BlockId | None = None
    slot: Slot | None = None
    bytes: int | None = None
    tokens: int | None = None
    req: RequestId | None = None
    prefetch: PrefetchId | None = None
    path: Path | None = None
    pinned: bool | None = None
    numa: int | None = None
    device_numa: int | None = None
    ns: NamespaceId | None = None


class SwapInFailed(TransferEnd, frozen=True, kw_only=True):
    """A load failed."""

    op: OpId
    src: Tier
    dst: Tier
    reason: SwapInFailReason
    block: BlockId | None = None
    bytes: int | None = None
    req: RequestId | None = None
    prefetch: PrefetchId | None = None
    ns: NamespaceId | None = None


# --- prefetches: each issued block ends in exactly one of used, wasted, cancelled


class PrefetchIssued(Event, frozen=True, kw_only=True):
    """A block is fetched ahead of need."""

    prefetch: PrefetchId
    block: BlockId
    src: Tier
    dst: Tier
    req: RequestId | None = None
    deadline_ns: int | None = None
    bytes: int | None = None
    depth: int | None = None
    id: EventId | None = None
    ns: NamespaceId | None = None


class PrefetchCompleted(Event, frozen=True, kw_only=True):
    """The I/O of a prefetch is done."""

    prefetch: PrefetchId
    block: BlockId
    ns: NamespaceId | None = None


class PrefetchReady(Event, frozen=True, kw_only=True):
    """The scheduler noticed that a prefetch is done."""

    prefetch: PrefetchId
    block: BlockId
    ns: NamespaceId | None = None


class PrefetchUsed(Event, frozen=True, kw_only=True):
    """A request read a prefetched block."""

    prefetch: PrefetchId
    block: BlockId
    req: RequestId
    ns: NamespaceId | None = None


class PrefetchWasted(Event, frozen=True, kw_only=True):
    """A prefetched block was of no use."""

    prefetch: PrefetchId
    block: BlockId
    reason: PrefetchWasteReason
    ns: NamespaceId | None = None


class PrefetchDeadlineMissed(Event, frozen=True, kw_only=True):
    """A prefetch was late; stands beside its outcome, not instead of it."""

    prefetch: PrefetchId
    block: BlockId
    ns: NamespaceId | None = None


class PrefetchSkipped(Event, frozen=True, kw_only=True):
    """A prefetch was not issued."""

    prefetch: PrefetchId
    block: BlockId
    reason: PrefetchSkipReason
    ns: NamespaceId | None = None


class PrefetchCancelled(Event, frozen=True, kw_only=True):
    """A prefetch was called off."""

    prefetch: PrefetchId
    block: BlockId
    reason: PrefetchCancelReason
    ns: NamespaceId | None = None


# --- decisions, capacities, pressure


class RecomputeChosen(Event, frozen=True, kw_only=True):
    """The engine chose to compute tokens again, and on which estimates."""

    req: RequestId
    tokens: int
    restore_estimate_ns: int | None = None
    recompute_estimate_ns: int | None = None
    keep_estimate_ns: int | None = None
    tier: Tier | None = None
    id: EventId | None = None


class RestoreChosen(Event, frozen=True, kw_only=True):
    """The engine chose to load tokens, and on which estimates."""

    req: RequestId
    tokens: int
    restore_estimate_ns: int | None = None
    recompute_estimate_ns: int | None = None
    keep_estimate_ns: int | None = None
    tier: Tier | None = None
    id: EventId | None = None


class CapacitySampled(Event, frozen=True, kw_only=True):
    """The state of a tier; with `ns`, one tenant's share of its quota."""

    tier: Tier
    capacity_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None
    pinned_bytes: int | None = None
    evictable_bytes: int | None = None
    depth: int | None = None
    in_flight: int | None = None
    pending_prefetch: int | None = None
    orphans: int | None = None
    largest_hole_bytes: int | None = None
    connections: int | None = None
    ns: NamespaceId | None = None


class GpuSampled(Event, frozen=True, kw_only=True):
    """The state of a device; `reason` explains what is absent."""

    device: int
    utilisation_pct: float | None = None
    idle_pct: float | None = None
    memory_bytes: int | None = None
    pcie_rx_bytes_per_s: float | None = None
    pcie_tx_bytes_per_s: float | None = None
    power_mw: int | None = None
    reason: SampleReason | None = None


class BackpressureOn(Event, frozen=True, kw_only=True):
    """A layer began to push back."""

    tier: Tier
    reason: BackpressureReason
    depth: int | None = None
    id: EventId | None = None


class BackpressureOff(Event, frozen=True, kw_only=True):
    """A layer stopped pushing back."""

    tier: Tier
    reason: BackpressureReason
    depth: int | None = None
    id: EventId | None = None


class AdmissionLimited(Event, frozen=True, kw_only=True):
    """The admission limit moved to `tokens`."""

    tokens: int
    reason: AdmissionReason
    cause: EventId | None = None


class LeaseGranted(Event, frozen=True, kw_only=True):
    """A block was lent; the borrower's swap-in names this event's id as its cause."""

    block: BlockId
    op: OpId | None = None
    id: EventId | None = None
    req: RequestId | None = None
    deadline_ns: int | None = None
    ns: NamespaceId | None = None


class TransferAcked(Event, frozen=True, kw_only=True):
    """The borrower of a block is done with it."""

    block: BlockId
    op: OpId | None = None
    id: EventId | None = None
    req: RequestId | None = None
    deadline_ns: int | None = None
    ns: NamespaceId | None = None


class OrphanFound(Event, frozen=True, kw_only=True):
    """Stored data was found that nobody owns."""

    tier: Tier
    bytes: int
    reason: OrphanReason
    block: BlockId | None = None
    ns: NamespaceId | None = None


class OrphanRemoved(Event, frozen=True, kw_only=True):
    """Stored data that nobody owned was deleted."""

    tier: Tier
    bytes: int
    reason: OrphanReason
    block: BlockId | None = None
    ns: NamespaceId | None = None


class Error(Event, frozen=True, kw_only=True):
    """Something failed; `text` is the detail."""

    reason: ErrorReason
    tier: Tier | None = None
    op: OpId | None = None
    req: RequestId | None = None
    text: str | None = None


# --- declarations and samples


class TierDeclared(Event, frozen=True, kw_only=True):
    """A tier exists; `text` is the engine's own name and level for it."""

    tier: Tier
    capacity_bytes: int
    text: str | None = None


class NamespaceDeclared(Event, frozen=True, kw_only=True):
    """The members of a namespace, hashed, as JSON; once per epoch."""

    ns: NamespaceId
    text: str


class ManifestDeclared(Event, frozen=True, kw_only=True):
    """Versions, backend, devices and the settings that should be active, as JSON."""

    text: str


class CounterSampled(Event, frozen=True, kw_only=True):
    """A counter that the engine itself publishes."""

    text: str
    value: float


class DegradeRequested(Event, frozen=True, kw_only=True):
    """Somebody asked the engine to degrade; `text` is the action."""

    text: str
    id: EventId | None = None
    cause: EventId | None = None
    deadline_ns: int | None = None


class DegradeApplied(Event, frozen=True, kw_only=True):
    """The engine degraded; `text` is the action."""

    text: str
    id: EventId | None = None
    cause: EventId | None = None
    deadline_ns: int | None = None


class DegradeCleared(Event, frozen=True, kw_only=True):
    """The engine returned to normal; `text` is the action."""

    text: str
    id: EventId | None = None
    cause: EventId | None = None
    deadline_ns: int | None = None


class FaultInjected(Event, frozen=True, kw_only=True):
    """A drill began a fault; `text` names it. No detector or attribution may read this."""

    text: str
    tier: Tier | None = None
    value: float | None = None


class FaultCleared(Event, frozen=True, kw_only=True):
    """A drill ended a fault; `text` names it. No detector or attribution may read this."""

    text: str
    tier: Tier | None = None
    value: float | None = None


# --- the recorder itself


class AgentStarted(Event, frozen=True, kw_only=True):
    """A recorder began; `text` is its version."""

    text: str | None = None
    previous_epoch: int | None = None


class AgentHeartbeat(Event, frozen=True, kw_only=True):
    """A part of the agent is alive."""

    reason: AgentReason
    produced: int
    drained: bool | None = None


class AgentStopped(Event, frozen=True, kw_only=True):
    """A part of the agent ended in order."""

    reason: AgentReason
    produced: int
    drained: bool | None = None


class EventsDropped(Event, frozen=True, kw_only=True):
    """Events of this range were dropped."""

    stage: Stage
    reason: DropReason
    first_seq: int
    last_seq: int
    count: int


class ClockStepped(Event, frozen=True, kw_only=True):
    """Wall minus monotonic time moved by `value` ns since the last calibration."""

    value: float
