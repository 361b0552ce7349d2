"""What vLLM and SGLang call the places of blocks, as our tiers."""

from typing import Final

from kvtrail_schema.enums import Tier

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.hashes import shown

_TIERS: Final = {
    "GPU": Tier.GPU,
    "CPU": Tier.HOST,
    "CPU_PINNED": Tier.HOST,
    "DISK": Tier.NVME,
    "FS": Tier.NVME,
    "STORAGE": Tier.NVME,
    "OBJ": Tier.REMOTE,
    "EXTERNAL": Tier.REMOTE,
    "SHARED_STORAGE": Tier.REMOTE,
    "OBJECT_STORE": Tier.REMOTE,
}
"""vLLM GPU, CPU, STORAGE (before 0.27 FS, OBJ); SGLang GPU, CPU_PINNED, DISK, EXTERNAL; the last two are those of llm-d."""


def tier_of(medium: object, locality: object = None) -> Tier:
    """The tier of a medium. None is the GPU: until vLLM 0.10 nothing else had events. Storage that is not local is remote.

    Raises:
        ForeignInvalid: no engine that is known here calls a place so.
    """
    if medium is None:
        return Tier.GPU
    tier = _TIERS.get(medium.upper()) if isinstance(medium, str) else None
    if tier is None:
        named = medium[:40] if isinstance(medium, str) and medium.isascii() else shown(medium)
        raise ForeignInvalid(f"medium {named!r} is known of no engine")
    return Tier.REMOTE if tier is Tier.NVME and locality == "REMOTE" else tier
