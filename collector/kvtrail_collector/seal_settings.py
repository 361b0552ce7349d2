"""What the settings say about sealing, as the policy that the store goes by."""

from pathlib import Path
from typing import Final

from kvtrail_collector.settings import Settings
from kvtrail_collector.store import SealPolicy
from kvtrail_collector.store.store import sealed_folder

_SECOND_NS: Final = 1_000_000_000
_DAY_NS: Final = 86_400 * _SECOND_NS
_NEVER_NS: Final = 36_500 * _DAY_NS


def seal_policy(settings: Settings) -> SealPolicy | None:
    """When events leave the hot file and for how long they are kept; None for a store in memory without a folder."""
    folder = Path(settings.seal_dir).absolute() if settings.seal_dir else sealed_folder(settings.store)
    if folder is None:
        return None
    return SealPolicy(
        folder=folder,
        seal_after_ns=int(settings.seal_after_s * _SECOND_NS) or _NEVER_NS,
        retention_ns=int(settings.retention_days * _DAY_NS) or None,
        retention_bytes=settings.retention_bytes or None,
    )
