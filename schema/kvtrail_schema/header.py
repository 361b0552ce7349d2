"""The outside of a batch on the wire: its frame, its header, and what can be said of it without reading its body.

```
"KVTR" | version u16 | header length u32 | CRC-32 u32, begun with the version, of header and body | header | body
```

The header is a list in MessagePack, of the fields of `BatchHeader` in their order; in versions 1 and 2 it is a JSON object, and
the checksum begins with 0.

Loads neither pyarrow nor numpy, so that what speaks of batches inside an engine's process does not pay for them.
"""

import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

import msgspec

from kvtrail_schema.clock import Clocks
from kvtrail_schema.enums import Stage
from kvtrail_schema.errors import BodyInvalid, ChecksumMismatch, FrameTooLarge, NotABatch, VersionUnknown
from kvtrail_schema.identity import LARGEST_ID
from kvtrail_schema.reasons import DropReason

VERSION: Final = 3
READABLE_VERSIONS: Final = frozenset({1, 2, 3})
"""Version 2 made the columns of the body smaller (`compact.py`), version 3 again, and header and body shorter."""
_WITH_JSON: Final = frozenset({1, 2})
MAGIC: Final = b"KVTR"
CONTENT_TYPE: Final = "application/vnd.kvtrail.batch"
_PREFIX: Final = struct.Struct("<4sHII")
_LARGEST_RANK: Final = 2**16 - 2
_LARGEST_NAMED: Final = 2**8 - 2
"""The largest number that a stage, a reason or a state may ever have."""


class StreamState(IntEnum):
    """What the shipper knows of the process whose events it ships."""

    RUNNING = 0
    STOPPED = 1
    KILLED = 2


class DropRange(msgspec.Struct, frozen=True):
    """Events that were given a seq and then dropped. May be declared more than once: ranges merge.

    `stage` is a `Stage` and `reason` a `DropReason`, or numbers that a newer sender knows and this version does not.
    """

    stage: int
    reason: int
    first_seq: int
    last_seq: int
    count: int


class BatchHeader(msgspec.Struct, frozen=True):
    """What is constant over a batch. `count` 0 is a heartbeat: it carries `produced`, drops and clocks alone.

    `produced` is the highest seq handed out as far as the sender knows; `body_bytes` the size before compression; `state` a
    `StreamState`, or a number that this version does not know.
    """

    version: int
    engine: str
    epoch: int
    rank: int
    first_seq: int
    last_seq: int
    count: int
    produced: int
    clocks: Clocks
    state: int = StreamState.RUNNING
    drops: tuple[DropRange, ...] = ()
    body_bytes: int = 0


def name_of(names: type[IntEnum], number: int) -> str:
    """What people read for a number: its name in lower case, or `unknown-NN` where a newer version gave it its meaning."""
    known = {member.value: member.name for member in names}
    return known[number].lower() if number in known else f"unknown-{number}"


def unknown_in(header: BatchHeader) -> tuple[str, ...]:
    """What in a header this version does not know, as `field=number`; each is kept as it came, and to be counted."""
    named: list[tuple[str, type[IntEnum], int]] = [("state", StreamState, header.state)]
    for drop in header.drops:
        named += [("stage", Stage, drop.stage), ("reason", DropReason, drop.reason)]
    return tuple(f"{field}={number}" for field, names, number in named if number not in {member.value for member in names})


class Limits(msgspec.Struct, frozen=True):
    """Bounds on what a reader allocates for one frame, whatever the frame says of itself."""

    header_bytes: int = 1 << 20
    frame_bytes: int = 16 << 20
    body_bytes: int = 128 << 20
    rows: int = 1 << 20
    engine_bytes: int = 256


DEFAULT_LIMITS: Final = Limits()


class _DropList(DropRange, frozen=True, array_like=True):
    """A drop range as it stands in a header."""


class _ClockList(msgspec.Struct, frozen=True, array_like=True):
    """The clocks as they stand in a header."""

    monotonic_ns: int
    wall_ns: int
    error_ns: int


class _HeadList(msgspec.Struct, frozen=True, array_like=True):
    """A header as it travels. Fields are only added, at the end, with defaults."""

    version: int
    engine: str
    epoch: int
    rank: int
    first_seq: int
    last_seq: int
    count: int
    produced: int
    clocks: _ClockList
    state: int = StreamState.RUNNING
    drops: tuple[_DropList, ...] = ()
    body_bytes: int = 0


def encode_head(header: BatchHeader) -> bytes:
    """A header as it travels: some 70 bytes and the engine's name, and 10 to 25 for each drop range."""
    return msgspec.msgpack.encode(msgspec.convert(header, _HeadList, from_attributes=True))


def join_frame(head: bytes, body: bytes, *, version: int = VERSION) -> bytes:
    """A frame of an encoded header and a body."""
    checksum = zlib.crc32(body, zlib.crc32(head, _seed(version)))
    return b"".join((_PREFIX.pack(MAGIC, version, len(head), checksum), head, body))


def _seed(version: int) -> int:
    """What a checksum begins with: from version 3 on the version, so that none is read as another."""
    return 0 if version in _WITH_JSON else version


def peek_header(frame: bytes | memoryview, *, limits: Limits = DEFAULT_LIMITS) -> BatchHeader:
    """The header of a frame, its checksum verified, its body untouched.

    Raises:
        CodecError: the frame cannot be read; the subclass says in which way.
    """
    head, _ = split_frame(memoryview(frame), limits)
    return head


def split_frame(frame: memoryview, limits: Limits) -> tuple[BatchHeader, memoryview]:
    """Header and compressed body of a frame whose checksum holds and whose sizes are within their bounds.

    Raises:
        CodecError: the frame cannot be read; the subclass says in which way.
    """
    if frame.nbytes > limits.frame_bytes:
        message = f"frame of {frame.nbytes} bytes is over the limit of {limits.frame_bytes}: send smaller batches"
        raise FrameTooLarge(message)
    if frame.nbytes < _PREFIX.size or bytes(frame[:4]) != MAGIC:
        message = f"frame of {frame.nbytes} bytes does not begin like a kvtrail batch: is another program sending here?"
        raise NotABatch(message)
    _, version, header_bytes, checksum = _PREFIX.unpack_from(frame)
    if version not in READABLE_VERSIONS:
        message = f"frame has version {version}, this reader knows {VERSION} and older: upgrade the collector"
        raise VersionUnknown(message)
    if header_bytes > min(limits.header_bytes, frame.nbytes - _PREFIX.size):
        message = f"header says {header_bytes} bytes, the frame has {frame.nbytes}: it is cut or forged"
        raise FrameTooLarge(message)
    if zlib.crc32(frame[_PREFIX.size :], _seed(version)) != checksum:
        message = "checksum of the frame does not match its bytes: they changed on the way"
        raise ChecksumMismatch(message)
    end = _PREFIX.size + header_bytes
    return _header(frame[_PREFIX.size : end], version, limits), frame[end:]


def _header(raw: memoryview, version: int, limits: Limits) -> BatchHeader:
    """The header, decoded and checked against its bounds and itself."""
    try:
        header = _decode_head(raw, version)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"header of the frame is not one: {error}"
        raise BodyInvalid(message) from error
    if header.body_bytes > limits.body_bytes or header.count > limits.rows:
        message = f"{header.count} rows in {header.body_bytes} bytes are over the limit of {limits.rows} in {limits.body_bytes}"
        raise FrameTooLarge(message)
    if len(header.engine.encode()) > limits.engine_bytes:
        message = f"engine name of {len(header.engine.encode())} bytes is over the limit of {limits.engine_bytes}"
        raise FrameTooLarge(message)
    problem = _contradiction(header, version)
    if problem:
        message = f"header of the frame contradicts itself: {problem}"
        raise BodyInvalid(message)
    return header


def _decode_head(raw: memoryview, version: int) -> BatchHeader:
    """The header as its version writes it."""
    if version in _WITH_JSON:
        return msgspec.json.decode(raw, type=BatchHeader)
    return msgspec.convert(msgspec.msgpack.decode(raw, type=_HeadList), BatchHeader, from_attributes=True)


def _contradiction(header: BatchHeader, version: int) -> str:
    """What in a header cannot be, or an empty text."""
    if any(not low <= number <= high for number, low, high in _numbers_of(header)):
        return "a number that does not fit its field"
    if header.version != version or not header.engine:
        return f"version {header.version} of engine {header.engine!r} inside a frame of version {version}"
    if header.count and not 1 <= header.first_seq <= header.last_seq:
        return f"seqs run from {header.first_seq} to {header.last_seq}"
    if header.count > header.last_seq - header.first_seq + 1:
        return f"{header.count} rows do not fit into seqs {header.first_seq} to {header.last_seq}"
    if any(not 1 <= drop.first_seq <= drop.last_seq for drop in header.drops):
        return "a drop range that ends before it begins"
    return ""


def _numbers_of(header: BatchHeader) -> Iterator[tuple[int, int, int]]:
    """Every number in a header, with the smallest and the largest that its field may hold."""
    drops = [number for drop in header.drops for number in (drop.first_seq, drop.last_seq, drop.count)]
    unsigned = (header.epoch, header.first_seq, header.last_seq, header.produced, header.count, header.body_bytes, *drops)
    yield from ((number, 0, LARGEST_ID) for number in unsigned)
    yield (header.rank, 0, _LARGEST_RANK)
    named = (header.state, *(number for drop in header.drops for number in (drop.stage, drop.reason)))
    yield from ((number, 0, _LARGEST_NAMED) for number in named)
    signed = (header.clocks.monotonic_ns, header.clocks.wall_ns, header.clocks.error_ns)
    yield from ((number, -(2**63), 2**63 - 1) for number in signed)
