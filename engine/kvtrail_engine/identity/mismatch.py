"""Why what is stored is not what was asked for: across namespaces, and between a block and a copy that claims to be it."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Final

from kvtrail_schema.identity import Namespace
from kvtrail_schema.reasons import InvalidateReason, MissReason, PrefillReason

from kvtrail_engine.tiers.block import Block, Copy

_VERSIONS: Final = frozenset(
    {
        "model",
        "model_version",
        "tokenizer",
        "prompt_template",
        "policy",
        "document_version",
        "lora_version",
        "kv_dtype",
        "block_size",
    }
)
"""Members that say how the values came to be. The others say who may read them."""

PREFILL_OF: Final = {
    MissReason.PERMISSION: PrefillReason.PERMISSION,
    MissReason.VERSION: PrefillReason.VERSION,
    MissReason.EXPIRED: PrefillReason.EXPIRED,
    MissReason.CHECKSUM: PrefillReason.CHECKSUM,
}
"""Why a block is computed that was missed for a reason; for any other it is new, or evicted."""

MISS_OF: Final = {
    InvalidateReason.PERMISSION_REVOKED: MissReason.PERMISSION,
    InvalidateReason.DOCUMENT_DELETED: MissReason.VERSION,
    InvalidateReason.MODEL_UPGRADED: MissReason.VERSION,
    InvalidateReason.POLICY_CHANGED: MissReason.VERSION,
    InvalidateReason.MANUAL: MissReason.CLEARED,
}
"""Why a lookup misses what was invalidated."""


def mismatch(asked: Namespace, stored: Namespace) -> MissReason | None:
    """Why KV of one namespace may not serve another: who may read comes before how it was made; None for the same one."""
    differing = {field.name for field in fields(asked) if getattr(asked, field.name) != getattr(stored, field.name)}
    if not differing:
        return None
    return MissReason.VERSION if differing <= _VERSIONS else MissReason.PERMISSION


def nearest(asked: Namespace, stored: Iterable[Namespace]) -> MissReason | None:
    """The reason that says most, where several namespaces hold the same content: of one's own an older version, if any."""
    reasons = {mismatch(asked, each) for each in stored} - {None}
    return min(reasons, key=lambda reason: reason is not MissReason.VERSION, default=None)


def problem_of(copy: Copy, block: Block, now_ns: int) -> MissReason | None:
    """Why a copy that is indexed under a block's id may not be read for that block; None if it may.

    Everything that the copy carries is compared, because an index entry is no proof.
    """
    stored = copy.block
    if copy.terms.is_expired(now_ns):
        return MissReason.EXPIRED
    if (stored.ns, stored.owner) != (block.ns, block.owner) or copy.doom is not None:
        return MissReason.PERMISSION
    if (stored.model_version, stored.dtype) != (block.model_version, block.dtype):
        return MissReason.VERSION
    same = (stored.id, stored.parent, stored.token_start, stored.tokens) == (
        block.id,
        block.parent,
        block.token_start,
        block.tokens,
    )
    return None if same and copy.refs >= 0 and copy.slot >= 0 else MissReason.CHECKSUM
