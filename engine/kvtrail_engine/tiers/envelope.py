"""What a record in a segment file says about itself, and when it is believed.

header | payload | trailer. The header names owner, namespace, block, parent, token range, model version, dtype, length, place,
expiry and checksum, and ends with a checksum of itself; the trailer repeats generation and checksum of the header, so that
a write that was cut off is seen. A file name is never proof, and neither is a place in a file.
"""

import struct
from dataclasses import dataclass
from typing import Final

import xxhash
from kvtrail_schema.enums import Dtype
from kvtrail_schema.identity import BlockId, NamespaceId, Slot

from kvtrail_engine.errors import (
    ChecksumError,
    RecordExpiredError,
    RecordForeignError,
    RecordMissingError,
    RecordVersionError,
    StorageError,
)
from kvtrail_engine.tiers.block import DEFAULT_PRIORITY, Block

MAGIC: Final = b"KVT2"
END: Final = b"KVTE"
NO_PARENT: Final = 2**64 - 1
STORE_BYTES: Final = 16
TAG_BYTES: Final = 16
NO_KEY: Final = 0
_BODY: Final = struct.Struct("<Q16s")
_MEANT: Final = struct.Struct("<4sBB2xIIIHHQQQQQQQ")
_MORE: Final = struct.Struct("<QqqB15x16s")
_EXPIRES_AT: Final = _BODY.size + _MEANT.size + 16
_GENERATION_AT: Final = _BODY.size + _MEANT.size
_NAMES_AT: Final = _BODY.size + _MEANT.size + _MORE.size
_I64: Final = struct.Struct("<q")
_SUM: Final = struct.Struct("<Q")
_TRAILER: Final = struct.Struct("<4s4xQQ")
_SCHEMA: Final = 2
_DTYPES: Final = frozenset(map(int, Dtype))


@dataclass(frozen=True, slots=True)
class Origin:
    """What all records that one engine may use have in common."""

    fingerprint: int
    """A keyed hash of everything that the bits of a block depend on beside its tokens."""
    key_id: int = NO_KEY
    """Which key the records are encrypted with; 0: they are not."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How dearly and how long a record is kept, on the wall clock, so that it holds across starts; 0: for ever."""

    priority: int = DEFAULT_PRIORITY
    priority_until_ns: int = 0
    expires_ns: int = 0

    def is_expired(self, wall_ns: int) -> bool:
        """Whether nobody may use the record any more."""
        return 0 < self.expires_ns <= wall_ns


@dataclass(frozen=True, slots=True)
class Meant:
    """What an index says that a place holds."""

    block: Block
    slot: Slot
    length: int
    origin: Origin

    def packed(self) -> tuple[bytes, bytes]:
        """These facts as they stand in a header: those of fixed size, and the names."""
        return _packed(self.block, self.slot, self.length, self.origin)


@dataclass(frozen=True, slots=True)
class Header:
    """What a record says of itself."""

    block: Block
    slot: Slot
    generation: int
    """Counts all records of a folder: of two records of one block the later one counts."""
    length: int
    keeping: Keeping
    origin: Origin
    store: bytes
    """Drawn at random by the engine that wrote it, at its start."""

    def identity(self) -> bytes:
        """Everything but checksum and tag: what encryption binds a payload to."""
        keeping = self.keeping
        more = _MORE.pack(self.generation, keeping.priority_until_ns, keeping.expires_ns, keeping.priority, self.store)
        fixed, names = _packed(self.block, self.slot, self.length, self.origin)
        return fixed + more + names


@dataclass(frozen=True, slots=True)
class Stamp:
    """What ties a header to the payload as it is stored."""

    payload_sum: int
    tag: bytes = bytes(TAG_BYTES)


def checksum(data: bytes | bytearray | memoryview) -> int:
    """XXH3 of 64 bits: at the speed of memory."""
    return xxhash.xxh3_64_intdigest(data)


def write_frame(header: Header, stamp: Stamp, head: memoryview, tail: memoryview) -> None:
    """Fill in the areas before and behind a payload; both are overwritten as a whole.

    Raises:
        StorageError: the names of owner and model version are too long for a header.
    """
    body = _BODY.pack(stamp.payload_sum, stamp.tag) + header.identity()
    room = len(head) - _SUM.size
    if len(body) > room:
        message = f"owner and model version of block {header.block.id:016x} are {len(body) - room} bytes too long for a record"
        raise StorageError(message)
    body = body.ljust(room, b"\0")
    head_sum = checksum(body)
    head[:] = body + _SUM.pack(head_sum)
    tail[:] = _trailer(header.generation, head_sum, len(tail))


def read_header(head: memoryview) -> tuple[Header, Stamp]:
    """What a header says, if it is whole.

    Raises:
        RecordMissingError: nothing was ever written there, or it was erased.
        ChecksumError: the header is not as it was written, or of a form that is not known here.
    """
    _check_head(head)
    return _unpack(head)


def check_sums(head: memoryview, payload: memoryview, tail: memoryview) -> None:
    """Whether every byte of a record is as it was written; what it says is not asked.

    Raises:
        RecordMissingError: nothing lies there.
        ChecksumError: header, payload or trailer is not as it was written.
    """
    head_sum = _check_head(head)
    generation = _SUM.unpack_from(head, _GENERATION_AT)[0]
    if tail != _trailer(generation, head_sum, len(tail)):
        message = f"record {generation} has no end"
        raise ChecksumError(message)
    if _SUM.unpack_from(head)[0] != checksum(payload):
        message = f"payload of record {generation} is not as it was written"
        raise ChecksumError(message)


def check_whole(head: memoryview, payload: memoryview, tail: memoryview) -> tuple[Header, Stamp]:
    """What a record says, if every byte of it is as it was written; whose it is, is not asked.

    Raises:
        RecordMissingError: nothing lies there.
        ChecksumError: header, payload or trailer is not as it was written, or of a form that is not known here.
    """
    check_sums(head, payload, tail)
    return _unpack(head)


def is_meant(head: memoryview, meant: Meant, wall_ns: int) -> bool:
    """Whether a whole header says exactly what the index means, and has not expired; `check_owner` says why not."""
    fixed, names = meant.packed()
    is_same = head[_BODY.size : _GENERATION_AT] == fixed and head[_NAMES_AT : _NAMES_AT + len(names)] == names
    expires_ns: int = _I64.unpack_from(head, _EXPIRES_AT)[0]
    return is_same and not 0 < expires_ns <= wall_ns


def check_owner(header: Header, meant: Meant, wall_ns: int) -> None:
    """Whether a whole record is the one that the index means, and may be used now.

    Raises:
        RecordForeignError: it belongs to another namespace, owner or key.
        RecordVersionError: another model, or another dtype, made it.
        ChecksumError: it is another block, token range, length or place.
        RecordExpiredError: its time is over.
    """
    block, theirs = meant.block, header.block
    named = f"record in slot {meant.slot}, meant as block {block.id:016x},"
    if (theirs.ns, theirs.owner, header.origin.key_id) != (block.ns, block.owner, meant.origin.key_id):
        raise RecordForeignError(f"{named} belongs to another namespace, owner or key")
    if (theirs.model_version, theirs.dtype, header.origin) != (block.model_version, block.dtype, meant.origin):
        raise RecordVersionError(f"{named} was made by another model version, or holds another dtype")
    if (theirs, header.slot, header.length) != (block, meant.slot, meant.length):
        raise ChecksumError(f"{named} is block {theirs.id:016x} of slot {header.slot}")
    if header.keeping.is_expired(wall_ns):
        raise RecordExpiredError(f"{named} has expired")


def _packed(block: Block, slot: Slot, length: int, origin: Origin) -> tuple[bytes, bytes]:
    """What a record is meant to be, as it stands in its header: facts of fixed size, and names."""
    owner, version = block.owner.encode(), block.model_version.encode()
    fixed = _MEANT.pack(
        MAGIC,
        _SCHEMA,
        block.dtype,
        slot,
        block.token_start,
        block.tokens,
        len(owner),
        len(version),
        block.id,
        block.ns,
        NO_PARENT if block.parent is None else block.parent,
        block.content,
        origin.fingerprint,
        length,
        origin.key_id,
    )
    return fixed, owner + version


def _check_head(head: memoryview) -> int:
    """The checksum that a header ends with, if it is right; as `read_header` otherwise."""
    room = len(head) - _SUM.size
    found: int = _SUM.unpack_from(head, room)[0]
    if found == checksum(head[:room]):
        return found
    if any(head):
        message = "header is torn"
        raise ChecksumError(message)
    message = "no record"
    raise RecordMissingError(message)


def _trailer(generation: int, head_sum: int, size: int) -> bytes:
    """The end that belongs to a header."""
    return _TRAILER.pack(END, generation, head_sum).ljust(size, b"\0")


def _unpack(head: memoryview) -> tuple[Header, Stamp]:
    """The fields of a header whose checksum holds."""
    payload_sum, tag = _BODY.unpack_from(head)
    fields = _MEANT.unpack_from(head, _BODY.size)
    magic, schema, dtype, slot, start, tokens, owner_bytes, version_bytes = fields[:8]
    block, ns, parent, content, fingerprint, length, key_id = fields[8:]
    if (magic, schema) != (MAGIC, _SCHEMA) or dtype not in _DTYPES:
        message = f"record of a form {schema} and dtype {dtype} that is not known here"
        raise ChecksumError(message)
    generation, priority_until_ns, expires_ns, priority, store = _MORE.unpack_from(head, _GENERATION_AT)
    owner = bytes(head[_NAMES_AT : _NAMES_AT + owner_bytes]).decode()
    version = bytes(head[_NAMES_AT + owner_bytes : _NAMES_AT + owner_bytes + version_bytes]).decode()
    stored = Block(
        BlockId(block),
        NamespaceId(ns),
        None if parent == NO_PARENT else BlockId(parent),
        start,
        tokens,
        owner,
        version,
        Dtype(dtype),
        content,
    )
    keeping = Keeping(priority, priority_until_ns, expires_ns)
    header = Header(stored, Slot(slot), generation, length, keeping, Origin(fingerprint, key_id), store)
    return header, Stamp(payload_sum, tag)
