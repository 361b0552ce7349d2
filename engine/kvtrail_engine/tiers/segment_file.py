"""One segment file: made whole or not at all, 0600, and believed only by what its first bytes say."""

import os
import struct
from pathlib import Path
from typing import Final

from kvtrail_engine.errors import map_os_errors
from kvtrail_engine.tiers.envelope import checksum
from kvtrail_engine.tiers.geometry import FILE_HEADER_BYTES, Geometry

PATTERN: Final = "segment-*.kv"
TMP_PATTERN: Final = "segment-*.kv.tmp"
_HEAD: Final = struct.Struct("<8sIQIIQ")
_MAGIC: Final = b"KVTSEGM2"


def segment_path(directory: Path, number: int) -> Path:
    """Where the segment of this number lies."""
    return directory / f"segment-{number:05d}.kv"


def file_header(number: int, geometry: Geometry) -> bytes:
    """The first bytes of a segment."""
    body = _HEAD.pack(_MAGIC, number, geometry.payload_bytes, geometry.align_bytes, geometry.segment_slots, 0)
    return (body + checksum(body).to_bytes(8, "little")).ljust(FILE_HEADER_BYTES, b"\0")


def is_segment(path: Path, number: int, geometry: Geometry) -> bool:
    """Whether a file is the segment of this number, with records of this geometry."""
    with map_os_errors(), path.open("rb") as stream:
        return stream.read(FILE_HEADER_BYTES) == file_header(number, geometry)


def create_segment(directory: Path, number: int, geometry: Geometry) -> Path:
    """Make a segment without records: a crash leaves it whole, or as a `.tmp` that the next start removes. Blocks.

    Raises:
        StorageError: the operating system refused.
    """
    path = segment_path(directory, number)
    tmp = path.with_name(path.name + ".tmp")
    with map_os_errors():
        file = os.open(tmp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "wb") as stream:
            stream.write(file_header(number, geometry))
            stream.flush()
            os.fsync(file)
        tmp.rename(path)
    return path


def number_of(path: Path) -> int | None:
    """The number that a segment's name claims; None where it claims none."""
    digits = path.name.removeprefix("segment-").removesuffix(".kv")
    return int(digits) if digits.isdecimal() else None


def remove_segments(directory: Path) -> int:
    """Delete segments, whole or begun; their bytes. Files of other names are nobody's business."""
    removed_bytes = 0
    with map_os_errors():
        for pattern in (PATTERN, TMP_PATTERN):
            for path in directory.glob(pattern):
                removed_bytes += path.stat().st_size
                path.unlink()
    return removed_bytes
