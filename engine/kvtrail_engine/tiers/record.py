"""What a record in a segment file says about itself: identity, token range, type, length, checksum.

A file name is never proof: a reader believes a record only if its header is whole, is the one that the index means, and
its payload has the checksum that the header names.
"""

import struct
import zlib

from kvtrail_schema.enums import Dtype

from kvtrail_engine.errors import ChecksumError, RecordMissingError
from kvtrail_engine.tiers.pool import Block

MAGIC = b"KVT1"
_HEADER = struct.Struct("<4sBxHQQQIIQI")
_SUM = struct.Struct("<I")
HEADER_BYTES = 64
NO_PARENT = 2**64 - 1


def pack_header(block: Block, payload: memoryview) -> bytes:
    """The header of a record: 64 bytes, the last four of them the checksum of the others."""
    body = _HEADER.pack(
        MAGIC,
        Dtype.FP32,
        1,
        block.id,
        block.ns,
        NO_PARENT if block.parent is None else block.parent,
        block.token_start,
        block.tokens,
        payload.nbytes,
        zlib.crc32(payload),
    ).ljust(HEADER_BYTES - _SUM.size, b"\0")
    return body + _SUM.pack(zlib.crc32(body))


def check_record(header: bytes | bytearray | memoryview, payload: memoryview, block: Block) -> None:
    """Believe a record, or say why not.

    Raises:
        RecordMissingError: there is no record.
        ChecksumError: there is one, torn, of another block, or with other bytes.
    """
    body = bytes(header[: HEADER_BYTES - _SUM.size])
    if body[:4] != MAGIC:
        message = f"no record of block {block.id:016x}"
        raise RecordMissingError(message)
    if _SUM.unpack_from(header, HEADER_BYTES - _SUM.size)[0] != zlib.crc32(body):
        message = f"header of block {block.id:016x} is torn"
        raise ChecksumError(message)
    if body != pack_header(block, payload)[: len(body)]:
        message = f"record is not block {block.id:016x} as it was written"
        raise ChecksumError(message)
