"""Blocks in the events of TensorRT-LLM: what names them, what levels are, what of them is kept."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.fields import U32, Fields, list_of, needed, object_of, text_of, whole
from kvtrail_agent.importers.hashes import block_of, shown

_DIGEST_DIGITS: Final = 64
_NUMBER_DIGITS: Final = 16
_MOST_PRIORITY: Final = 100
TIERS: Final = {"gpu": Tier.GPU, "host": Tier.HOST, "disk": Tier.NVME}
"""The names in `kvCacheLevelTiers`."""
DEFAULT_LEVELS: Final = (Tier.GPU, Tier.HOST, Tier.NVME)


class StoredBlock(NamedTuple):
    """One block of a `stored` event."""

    block: BlockId
    tier: Tier
    tokens: int
    priority: int | None
    salt: str | None


@dataclass(frozen=True, slots=True)
class Levels:
    """Which tier a level is: V1 has GPU and host; V2 counts the configured tiers, so that level 1 may be a disk."""

    tiers: tuple[Tier, ...] = DEFAULT_LEVELS

    def tier_of(self, level: int) -> Tier:
        """The tier of a level.

        Raises:
            ForeignInvalid: there is no such level.
        """
        if level < len(self.tiers):
            return self.tiers[level]
        raise ForeignInvalid(f"cache_level {level} is beyond the {len(self.tiers)} known ones")


def levels_of(names: list[object]) -> Levels:
    """Levels by the names that the engine's own statistics give them. Raises `ForeignInvalid` for any other name."""
    tiers = [TIERS.get(name.lower()) if isinstance(name, str) else None for name in names]
    known = tuple(tier for tier in tiers if tier is not None)
    if len(known) == len(names) and known:
        return Levels(known)
    raise ForeignInvalid("kvCacheLevelTiers names a tier that is none of gpu, host, disk")


def trtllm_block(key: bytes, told: object) -> BlockId:
    """The id of a block: a number of 64 bits; or a digest as text, of which the number is the first eight bytes.

    Raises:
        ForeignInvalid: it is neither.
    """
    if not isinstance(told, str):
        return block_of(key, told)
    digits = told.removeprefix("0x").lower()
    if len(digits) not in {_DIGEST_DIGITS, _NUMBER_DIGITS} or not set(digits) <= set("0123456789abcdef"):
        raise ForeignInvalid(f"{shown(told)} is no digest of a block")
    return block_of(key, int(digits[:_NUMBER_DIGITS], 16))


def stored_block(key: bytes, value: object, levels: Levels) -> StoredBlock:
    """One block of a `stored` event, its tokens counted and not kept. Raises `ForeignInvalid` where it is none."""
    fields = object_of(value, "a block")
    priority = whole(fields, "priority", _MOST_PRIORITY)
    return StoredBlock(
        trtllm_block(key, fields.get("block_hash")),
        levels.tier_of(whole(fields, "cache_level") or 0),
        len(list_of(fields, "tokens")),
        priority,
        text_of(fields, "cache_salt"),
    )


def diff_of(fields: Fields, name: str, most: int) -> tuple[int, int] | None:
    """One half of an `updated` event, as (old, new); None where that half did not change. Older versions write `{}` for it.

    Raises:
        ForeignInvalid: it is no difference.
    """
    value = fields.get(name)
    if value is None or value == {}:
        return None
    diff = object_of(value, name)
    return needed(diff, "old_value", most), needed(diff, "new_value", most)


def group_of(envelope: Fields) -> int:
    """What tells the caches of one engine apart that share hashes: the layer group, else the attention window."""
    layers, window = whole(envelope, "layer_group_id", 2**16), whole(envelope, "window_size", U32, least=-1)
    return (layers + 1) << 40 if layers is not None else (window or 0) & U32
