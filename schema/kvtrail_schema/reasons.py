"""The reasons that each kind of event accepts: subsets of `Reason`, under the same numbers."""

from enum import IntEnum

from kvtrail_schema.enums import Reason


class WaitReason(IntEnum):
    """Says why a request is not running."""

    CAPACITY = Reason.CAPACITY.value
    KV_LOAD = Reason.KV_LOAD.value
    BUDGET = Reason.BUDGET.value
    LIMIT = Reason.LIMIT.value
    BACKPRESSURE = Reason.BACKPRESSURE.value
    GRAMMAR = Reason.GRAMMAR.value


class PreemptReason(IntEnum):
    """Says why a running request lost, or regained, its place."""

    CAPACITY = Reason.CAPACITY.value
    PRIORITY = Reason.PRIORITY.value
    RECOMPUTE = Reason.RECOMPUTE.value
    SWAP = Reason.SWAP.value


class FinishReason(IntEnum):
    """Says why a request ended well."""

    STOP = Reason.STOP.value
    LENGTH = Reason.LENGTH.value


class CancelReason(IntEnum):
    """Says who or what called a request off."""

    CLIENT = Reason.CLIENT.value
    TIMEOUT = Reason.TIMEOUT.value
    SUPERSEDED = Reason.SUPERSEDED.value


class RejectReason(IntEnum):
    """Says why a request was refused."""

    SLO = Reason.SLO.value
    LIMIT = Reason.LIMIT.value
    BACKPRESSURE = Reason.BACKPRESSURE.value
    TENANT_QUOTA = Reason.TENANT_QUOTA.value


class PrefillReason(IntEnum):
    """Says why tokens are computed: for the first time, or again."""

    NEW = Reason.NEW.value
    EVICTED = Reason.EVICTED.value
    CHOSEN = Reason.CHOSEN.value
    TRUNCATED = Reason.TRUNCATED.value
    LOAD_FAILED = Reason.LOAD_FAILED.value
    CHECKSUM = Reason.CHECKSUM.value
    VERSION = Reason.VERSION.value
    EXPIRED = Reason.EXPIRED.value
    PERMISSION = Reason.PERMISSION.value
    PREEMPTED = Reason.PREEMPTED.value


class MissReason(IntEnum):
    """Says which index or rule made a lookup miss."""

    GPU_POOL = Reason.GPU_POOL.value
    HOST_POOL = Reason.HOST_POOL.value
    DISK_INDEX = Reason.DISK_INDEX.value
    REMOTE_INDEX = Reason.REMOTE_INDEX.value
    PERMISSION = Reason.PERMISSION.value
    VERSION = Reason.VERSION.value
    EXPIRED = Reason.EXPIRED.value
    CHECKSUM = Reason.CHECKSUM.value
    CLEARED = Reason.CLEARED.value
    NEVER_STORED = Reason.NEVER_STORED.value


class EvictReason(IntEnum):
    """Says why a copy left its place."""

    CAPACITY = Reason.CAPACITY.value
    DEMOTION = Reason.DEMOTION.value
    CLEAR = Reason.CLEAR.value
    ABORT = Reason.ABORT.value
    LEASE = Reason.LEASE.value
    QUOTA = Reason.QUOTA.value
    PREFETCH_ROOM = Reason.PREFETCH_ROOM.value
    EXPIRED = Reason.EXPIRED.value


class ClearReason(IntEnum):
    """Says why a whole tier was emptied."""

    MANUAL = Reason.MANUAL.value
    RESET = Reason.RESET.value
    MODEL_UPGRADED = Reason.MODEL_UPGRADED.value


class InvalidateReason(IntEnum):
    """Says which rule forbids further use of a block."""

    PERMISSION_REVOKED = Reason.PERMISSION_REVOKED.value
    DOCUMENT_DELETED = Reason.DOCUMENT_DELETED.value
    MODEL_UPGRADED = Reason.MODEL_UPGRADED.value
    POLICY_CHANGED = Reason.POLICY_CHANGED.value
    MANUAL = Reason.MANUAL.value


class SwapOutFailReason(IntEnum):
    """Says why a write to a slower tier failed."""

    TIMEOUT = Reason.TIMEOUT.value
    CHECKSUM = Reason.CHECKSUM.value
    MISSING = Reason.MISSING.value
    IO = Reason.IO.value
    ALLOC = Reason.ALLOC.value
    CANCELLED = Reason.CANCELLED.value
    EXPIRED = Reason.EXPIRED.value
    NO_SPACE = Reason.NO_SPACE.value
    VERSION = Reason.VERSION.value
    PERMISSION = Reason.PERMISSION.value
    LOST = Reason.LOST.value


class SwapOutSkipReason(IntEnum):
    """Says why a write to a slower tier was not made."""

    BLOCK_REUSED = Reason.BLOCK_REUSED.value
    BELOW_THRESHOLD = Reason.BELOW_THRESHOLD.value
    ALREADY_STORED = Reason.ALREADY_STORED.value
    BACKPRESSURE = Reason.BACKPRESSURE.value
    QUOTA = Reason.QUOTA.value


class SwapInFailReason(IntEnum):
    """Says why a load failed."""

    TIMEOUT = Reason.TIMEOUT.value
    CHECKSUM = Reason.CHECKSUM.value
    MISSING = Reason.MISSING.value
    IO = Reason.IO.value
    ALLOC = Reason.ALLOC.value
    CANCELLED = Reason.CANCELLED.value
    EXPIRED = Reason.EXPIRED.value
    VERSION = Reason.VERSION.value
    PERMISSION = Reason.PERMISSION.value
    LOST = Reason.LOST.value


class PrefetchWasteReason(IntEnum):
    """Says why a prefetched block was of no use."""

    EVICTED_BEFORE_USE = Reason.EVICTED_BEFORE_USE.value
    REQUEST_GONE = Reason.REQUEST_GONE.value
    SUPERSEDED = Reason.SUPERSEDED.value
    TOO_LATE = Reason.TOO_LATE.value
    NEVER_NEEDED = Reason.NEVER_NEEDED.value
    MISSING = Reason.MISSING.value


class PrefetchSkipReason(IntEnum):
    """Says why a prefetch was not issued."""

    NO_ROOM = Reason.NO_ROOM.value
    NO_BANDWIDTH = Reason.NO_BANDWIDTH.value
    BYTE_CAP = Reason.BYTE_CAP.value
    BACKPRESSURE = Reason.BACKPRESSURE.value
    DISABLED = Reason.DISABLED.value
    DEGRADED = Reason.DEGRADED.value


class PrefetchCancelReason(IntEnum):
    """Says why a prefetch was called off."""

    REQUEST_GONE = Reason.REQUEST_GONE.value
    SUPERSEDED = Reason.SUPERSEDED.value
    DEADLINE = Reason.DEADLINE.value
    DEGRADED = Reason.DEGRADED.value
    SHUTDOWN = Reason.SHUTDOWN.value


class SampleReason(IntEnum):
    """Says why a sample has no value."""

    UNSUPPORTED = Reason.UNSUPPORTED.value
    NO_DEVICE = Reason.NO_DEVICE.value
    ERROR = Reason.ERROR.value


class BackpressureReason(IntEnum):
    """Says which layer pushes back."""

    HOST_QUEUE = Reason.HOST_QUEUE.value
    DISK_QUEUE = Reason.DISK_QUEUE.value
    REMOTE_LOST = Reason.REMOTE_LOST.value
    REMOTE_QUEUE = Reason.REMOTE_QUEUE.value


class AdmissionReason(IntEnum):
    """Says why the admission limit moved."""

    BACKPRESSURE = Reason.BACKPRESSURE.value
    DEGRADED = Reason.DEGRADED.value
    MANUAL = Reason.MANUAL.value
    CLEARED = Reason.CLEARED.value


class OrphanReason(IntEnum):
    """Says what kind of stored data nobody owns."""

    TORN = Reason.TORN.value
    UNINDEXED = Reason.UNINDEXED.value
    TMP = Reason.TMP.value
    FOREIGN = Reason.FOREIGN.value
    EXPIRED = Reason.EXPIRED.value


class ErrorReason(IntEnum):
    """Says the sort of an error."""

    IO = Reason.IO.value
    TIMEOUT = Reason.TIMEOUT.value
    NO_SPACE = Reason.NO_SPACE.value
    PERMISSION = Reason.PERMISSION.value
    PROTOCOL = Reason.PROTOCOL.value
    ALLOC = Reason.ALLOC.value
    PIN_FAILED = Reason.PIN_FAILED.value
    CHECKSUM = Reason.CHECKSUM.value
    DEVICE = Reason.DEVICE.value
    INTERNAL = Reason.INTERNAL.value


class AgentReason(IntEnum):
    """Says which part of the agent speaks."""

    RECORDER = Reason.RECORDER.value
    SHIPPER = Reason.SHIPPER.value


class DropReason(IntEnum):
    """Says why events were dropped."""

    FULL = Reason.FULL.value
    TOO_LARGE = Reason.TOO_LARGE.value
    ENCODE_ERROR = Reason.ENCODE_ERROR.value
    SPOOL_FULL = Reason.SPOOL_FULL.value
    REJECTED = Reason.REJECTED.value
    RETENTION = Reason.RETENTION.value
    EXPIRED = Reason.EXPIRED.value
    KILLED = Reason.KILLED.value
