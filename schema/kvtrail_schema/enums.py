"""Closed lists of names that stand in events, each with its number on the wire.

Numbers are never reused and names never change their number; a list only ever grows at its end (EVENTS §6). All
reasons share one numbering, `Reason`, so that one column carries them; each kind of event accepts only its own subset,
and a test holds every subset to the numbers of `Reason`.
"""

from enum import IntEnum


class Tier(IntEnum):
    """A level of the memory hierarchy that can hold a copy of a block."""

    GPU = 0
    HOST = 1
    NVME = 2
    REMOTE = 3


class Dtype(IntEnum):
    """Element type of the KV values in a block."""

    FP32 = 0
    FP16 = 1
    BF16 = 2
    FP8_E4M3 = 3
    FP8_E5M2 = 4
    INT8 = 5


class Path(IntEnum):
    """The way the bytes of a transfer took."""

    DMA = 0
    GDS = 1
    POSIX = 2
    BOUNCE = 3
    SOCKET = 4


class Stage(IntEnum):
    """Where on its way an event was dropped."""

    RING = 0
    ENCODE = 1
    SPOOL = 2
    TRANSPORT = 3
    BROKER = 4
    COLLECTOR = 5
    PROCESS = 6


class Reason(IntEnum):
    """Every reason that any event can carry, under its one number."""

    CAPACITY = 1
    KV_LOAD = 2
    BUDGET = 3
    LIMIT = 4
    BACKPRESSURE = 5
    GRAMMAR = 6
    PRIORITY = 7
    RECOMPUTE = 8
    SWAP = 9
    STOP = 10
    LENGTH = 11
    CLIENT = 12
    TIMEOUT = 13
    SUPERSEDED = 14
    SLO = 15
    TENANT_QUOTA = 16
    NEW = 17
    EVICTED = 18
    CHOSEN = 19
    TRUNCATED = 20
    LOAD_FAILED = 21
    CHECKSUM = 22
    VERSION = 23
    EXPIRED = 24
    PERMISSION = 25
    PREEMPTED = 26
    GPU_POOL = 27
    HOST_POOL = 28
    DISK_INDEX = 29
    REMOTE_INDEX = 30
    CLEARED = 31
    NEVER_STORED = 32
    DEMOTION = 33
    CLEAR = 34
    ABORT = 35
    LEASE = 36
    QUOTA = 37
    PREFETCH_ROOM = 38
    MANUAL = 39
    RESET = 40
    MODEL_UPGRADED = 41
    PERMISSION_REVOKED = 42
    DOCUMENT_DELETED = 43
    POLICY_CHANGED = 44
    MISSING = 45
    IO = 46
    ALLOC = 47
    CANCELLED = 48
    NO_SPACE = 49
    BLOCK_REUSED = 50
    BELOW_THRESHOLD = 51
    ALREADY_STORED = 52
    EVICTED_BEFORE_USE = 53
    REQUEST_GONE = 54
    TOO_LATE = 55
    NEVER_NEEDED = 56
    NO_ROOM = 57
    NO_BANDWIDTH = 58
    BYTE_CAP = 59
    DISABLED = 60
    DEGRADED = 61
    DEADLINE = 62
    SHUTDOWN = 63
    UNSUPPORTED = 64
    NO_DEVICE = 65
    ERROR = 66
    HOST_QUEUE = 67
    DISK_QUEUE = 68
    REMOTE_LOST = 69
    TORN = 70
    UNINDEXED = 71
    TMP = 72
    FOREIGN = 73
    PROTOCOL = 74
    PIN_FAILED = 75
    DEVICE = 76
    INTERNAL = 77
    RECORDER = 78
    SHIPPER = 79
    FULL = 80
    TOO_LARGE = 81
    ENCODE_ERROR = 82
    SPOOL_FULL = 83
    REJECTED = 84
    RETENTION = 85
    KILLED = 86
    LOST = 87
    REMOTE_QUEUE = 88
