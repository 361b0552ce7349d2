"""How the nvme tier keeps its files: what is synchronised, what goes around the page cache, what is encrypted, what stays."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

MIB = 1024 * 1024


class FsyncPolicy(Enum):
    """When a written record is safe from a crash of the host. A crash of the process alone loses nothing that was written."""

    ALWAYS = "always"
    """Before an op is reported as written."""
    BATCH = "batch"
    """Once `sync_bytes` have been written since the last time, and at the end."""
    NEVER = "never"
    """When the operating system does it. What a crash of the host tears is found at the next start, and computed again."""


class DirectIo(Enum):
    """Whether reads and writes go around the page cache."""

    AUTO = "auto"
    """Where the file system can; where it cannot, the manifest says so."""
    OFF = "off"
    """Never: the page cache serves what it holds."""


@dataclass(frozen=True, slots=True)
class NvmeSettings:
    """The files of the nvme tier; its room, threads and floor stand in its `TierSettings`."""

    outlives_engine: bool = True
    """Whether records stay when the engine ends, and are taken in again at the next start."""
    direct: DirectIo = DirectIo.AUTO
    fsync: FsyncPolicy = FsyncPolicy.NEVER
    sync_bytes: int = 64 * MIB
    segment_bytes: int = 256 * MIB
    """About so large is one file."""
    expiry_ns: int = 0
    """A record may be used for so long after it was written, by the wall clock; 0: for ever."""
    key_file: Path | None = None
    """A file of mode 0600 with at least 32 random bytes: records are encrypted, under a key of its own for each namespace."""
    no_space_retry_ns: int = 10_000_000_000
    """After the disk was full, the places that it had no room for are tried again this much later."""
