"""Everything that this package raises.

EngineError
├── SettingsError          settings that cannot work together
├── PinFailedError         memory for the device could not be pinned
├── TraceError             a wrong line in a trace file
├── EngineClosedError      the engine takes no more work
├── EngineFailedError      the engine's thread ended by a defect
└── TransferError          one op could not be done; becomes `swap_*_failed`, never leaves the engine
    ├── ChecksumError      a record was read and is not what it should be
    │   ├── RecordForeignError   it belongs to another namespace, or is encrypted under another key
    │   └── RecordVersionError   another model version or dtype made it
    ├── RecordMissingError nothing of that identity lies there
    ├── RecordExpiredError its time is over
    ├── StorageError       the operating system refused
    │   └── NoSpaceError   because nothing more fits
    ├── RemoteLostError    the remote tier cannot be asked: no connection, no permission, or given up for now
    │   └── RemoteTimeoutError  it did not answer in time
    ├── DeviceLostError    the device answers nothing any more; outside of an op it ends the engine
    └── TransferCancelledError  nobody wants the op any more
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class EngineError(Exception):
    """The root of all errors of this package."""


class SettingsError(EngineError):
    """Settings that cannot work; the message names the field and what would."""


class PinFailedError(EngineError):
    """Memory could not be pinned; the message names what was asked for, what was got, and the limits."""


class TraceError(EngineError):
    """A line of a trace file is wrong; line 0: the file itself."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}" if line else f"{path}: {problem}")
        self.path = path
        self.line = line
        self.problem = problem


class EngineClosedError(EngineError):
    """The engine was closed, so nothing can be submitted or asked."""


class EngineFailedError(EngineError):
    """The engine's thread ended by a defect; the cause is chained."""


class TransferError(EngineError):
    """One op could not be done."""


class ChecksumError(TransferError):
    """A record's identity, length or checksum is not what the index says."""


class RecordForeignError(ChecksumError):
    """A record belongs to another namespace, or is encrypted under another key."""


class RecordVersionError(ChecksumError):
    """A record was made by another model version, or holds another dtype."""


class RecordExpiredError(TransferError):
    """A record's time is over."""


class RecordMissingError(TransferError):
    """The place that should hold a record holds none."""


class StorageError(TransferError):
    """The operating system refused a read or a write."""


class NoSpaceError(StorageError):
    """Nothing more fits."""


class RemoteLostError(TransferError):
    """The remote tier cannot be asked; the message says why."""


class RemoteTimeoutError(RemoteLostError):
    """The remote tier did not answer in time."""


class DeviceLostError(TransferError):
    """The device answers nothing any more, and what lay on it is gone: this process cannot use it again."""


class TransferCancelledError(TransferError):
    """The op was called off before it was served."""


_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def map_os_errors() -> Iterator[None]:
    """The only place where an `OSError` of the storage becomes ours."""
    try:
        yield
    except OSError as exc:
        kind = NoSpaceError if exc.errno in _NO_SPACE else StorageError
        raise kind(str(exc)) from exc
