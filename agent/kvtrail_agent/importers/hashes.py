"""Hashes of other engines as our ids: keyed, so that nobody who reads a topic can test whether a known document was cached.

One block has one id whichever way it was told: a number of 64 bits, a negative one, or all bytes of a digest whose last eight
those are. So events from a socket, from a file and from inside the engine name the same block.
"""

from typing import Final

import msgspec
from kvtrail_schema.identity import BlockId, keyed_id

from kvtrail_agent.errors import ForeignInvalid

HASH_BYTES: Final = 8
_MASK: Final = (1 << 64) - 1
_LONGEST_DIGEST: Final = 128
_DEEPEST: Final = 4
_LARGEST_EXTRA: Final = 4_000
_KEPT_TEXT: Final = 24

BlockHash = int | bytes
"""A hash as an engine tells it."""


def block_of(key: bytes, block_hash: object) -> BlockId:
    """The id of a block that another engine names by a hash. About a microsecond; anywhere.

    Raises:
        ForeignInvalid: it is neither a whole number of 64 bits nor a digest.
    """
    return BlockId(keyed_id(key, b"foreign-block", hash_bytes(block_hash)))


def hash_bytes(block_hash: object) -> bytes:
    """The eight bytes that a hash is known by: the low 64 bits of a number, the last eight bytes of a digest.

    Raises:
        ForeignInvalid: it is neither.
    """
    if isinstance(block_hash, bytes) and 0 < len(block_hash) <= _LONGEST_DIGEST:
        return block_hash[-HASH_BYTES:].rjust(HASH_BYTES, b"\0")
    if isinstance(block_hash, int) and not isinstance(block_hash, bool) and -(1 << 63) <= block_hash <= _MASK:
        return (block_hash & _MASK).to_bytes(HASH_BYTES, "big")
    raise ForeignInvalid(f"{shown(block_hash)} is no hash of a block")


def shown(value: object) -> str:
    """A value in a message: what it is, never what it says, where it could be a prompt."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)[:_KEPT_TEXT]
    size = len(value) if isinstance(value, str | bytes | list | dict | tuple) else 0
    return f"a {type(value).__name__} of {size}"


def redacted(key: bytes, fields: dict[str, object]) -> str | None:
    """Fields that nobody knows, as JSON without tokens and names: numbers stay, texts are keyed hashes, lists are counts.

    None where there are none.
    """
    if not fields:
        return None
    kept = {str(name)[:100]: _kept(key, value, 0) for name, value in fields.items()}
    text = msgspec.json.encode(kept).decode()
    return text if len(text) <= _LARGEST_EXTRA else msgspec.json.encode({"fields": len(kept), "bytes": len(text)}).decode()


def _kept(key: bytes, value: object, depth: int) -> object:
    """What may be kept of one unknown value."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(1 << 63) <= value <= _MASK else f"{value.bit_length()} bits"
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)  # noqa: PLR0124 - what is no number differs from itself
    if isinstance(value, str | bytes):
        raw = value.encode(errors="surrogateescape") if isinstance(value, str) else value
        return f"keyed:{keyed_id(key, b'unknown', raw):016x}"
    if isinstance(value, dict) and depth < _DEEPEST:
        return {str(name)[:100]: _kept(key, inner, depth + 1) for name, inner in value.items()}
    return shown(value)
