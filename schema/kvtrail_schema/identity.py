"""Who and what an event speaks about: typed ids, streams, and the namespace that KV may not cross.

Ids are 64-bit numbers. The largest one, 2^64 - 1, is reserved: records of fixed size use it to say "absent". Ids that
could be guessed from content (blocks, namespaces, members of a namespace) are keyed hashes, so that nobody who reads
the stream can test whether a known document was cached (EVENTS §6).
"""

import hashlib
import json
from dataclasses import dataclass, fields
from typing import NewType

RequestId = NewType("RequestId", int)
BlockId = NewType("BlockId", int)
NamespaceId = NewType("NamespaceId", int)
OpId = NewType("OpId", int)
PrefetchId = NewType("PrefetchId", int)
StepId = NewType("StepId", int)
EventId = NewType("EventId", int)
Slot = NewType("Slot", int)
Seq = NewType("Seq", int)
Epoch = NewType("Epoch", int)
Rank = NewType("Rank", int)

LARGEST_ID = 2**64 - 2
MIN_KEY_BYTES = 16


@dataclass(frozen=True, slots=True, order=True)
class Stream:
    """One sequence of events: `seq` counts from 1 within it, without a hole unless a drop is declared."""

    engine: str
    epoch: Epoch
    rank: Rank


@dataclass(frozen=True, slots=True)
class Namespace:
    """The typed tuple that KV may not cross; two different tuples never share an id by concatenation."""

    tenant: str = ""
    model: str = ""
    model_version: str = ""
    tokenizer: str = ""
    prompt_template: str = ""
    policy: str = ""
    document_version: str = ""
    access_group: str = ""
    lora: str = ""
    lora_version: str = ""
    salt: str = ""
    kv_dtype: str = ""
    block_size: int = 0


def keyed_id(key: bytes, *parts: bytes) -> int:
    """Hash parts, each with its length, to an id under a secret key.

    BLAKE2b in keyed mode (RFC 7693), truncated to 64 bits. About a microsecond; runs anywhere.

    Raises:
        ValueError: the key is shorter than 16 bytes, so that the hash could be guessed.
    """
    if len(key) < MIN_KEY_BYTES:
        message = f"identity key has {len(key)} bytes, at least {MIN_KEY_BYTES} are needed: make one with 32 random bytes"
        raise ValueError(message)
    digest = hashlib.blake2b(digest_size=8, key=key)
    for part in parts:
        digest.update(len(part).to_bytes(4, "little"))
        digest.update(part)
    return min(int.from_bytes(digest.digest(), "little"), LARGEST_ID)


def namespace_id(key: bytes, namespace: Namespace) -> NamespaceId:
    """The 64-bit id under which a namespace stands on events."""
    members = [f"{field.name}={getattr(namespace, field.name)}".encode() for field in fields(namespace)]
    return NamespaceId(keyed_id(key, b"namespace", *members))


def namespace_text(key: bytes, namespace: Namespace) -> str:
    """The text of `namespace_declared`: one hashed value per member that is set, never a name in clear."""
    members = {field.name: getattr(namespace, field.name) for field in fields(namespace)}
    hashed = {name: f"{keyed_id(key, name.encode(), str(value).encode()):016x}" for name, value in members.items() if value}
    return json.dumps(hashed, sort_keys=True, separators=(",", ":"))


def block_id(key: bytes, ns: NamespaceId, parent: BlockId | None, token_ids: bytes) -> BlockId:
    """The id of a block: its namespace, its prefix (by the parent's id) and its own tokens, hashed under the key."""
    prefix = b"" if parent is None else parent.to_bytes(8, "little")
    return BlockId(keyed_id(key, b"block", ns.to_bytes(8, "little"), prefix, token_ids))
