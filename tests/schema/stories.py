"""A small language for stories of copies: each word is an event about a block, in the place of its own number."""

from typing import Any

from kvtrail_schema import events as e
from kvtrail_schema.enums import Tier
from kvtrail_schema.reasons import EvictReason, InvalidateReason, SwapInFailReason


def _place(block: int, tier: Tier = Tier.GPU) -> dict[str, Any]:
    """The copy of a block whose slot has the block's number."""
    return {"block": block, "tier": tier, "slot": block}


def _load(block: int, op: int | None) -> dict[str, Any]:
    """The transfer that fills that copy; its op has the block's number unless one is given."""
    return {"op": block if op is None else op, "src": Tier.HOST, "dst": Tier.GPU, "block": block}


def created(block: int, *, ns: int | None = None, tier: Tier = Tier.GPU) -> e.BlockCreated:
    """The block was computed."""
    more: dict[str, Any] = {"ns": ns}
    return e.BlockCreated(**_place(block, tier), **more)


def filling(block: int, *, op: int | None = None) -> e.SwapInQueued:
    """A load of the block was queued."""
    return e.SwapInQueued(**_load(block, op), **_slot(block))


def filled(block: int, *, op: int | None = None) -> e.SwapInLoaded:
    """A load of the block is complete."""
    return e.SwapInLoaded(**_load(block, op), **_slot(block))


def _slot(block: int) -> dict[str, Any]:
    """The slot with the block's number."""
    return {"slot": block}


def load_failed(block: int, *, op: int | None = None) -> e.SwapInFailed:
    """A load of the block failed; the event names no slot."""
    return e.SwapInFailed(**_load(block, op), reason=SwapInFailReason.IO)


def read(block: int) -> e.AttentionRead:
    """A request read the block."""
    more: dict[str, Any] = {"req": 1}
    return e.AttentionRead(**_place(block), **more)


def pinned(block: int, *, refs: int) -> e.BlockPinned:
    """The block has this many references now, one more than before."""
    return e.BlockPinned(**_place(block), refs=refs)


def unpinned(block: int, *, refs: int) -> e.BlockUnpinned:
    """The block has this many references now, one less than before."""
    return e.BlockUnpinned(**_place(block), refs=refs)


def evicted(block: int) -> e.Evicted:
    """The block made room."""
    return e.Evicted(**_place(block), reason=EvictReason.CAPACITY)


def invalidated(block: int) -> e.Invalidated:
    """The block was forbidden."""
    more: dict[str, Any] = {"cause": 1}
    return e.Invalidated(**_place(block), reason=InvalidateReason.DOCUMENT_DELETED, **more)
