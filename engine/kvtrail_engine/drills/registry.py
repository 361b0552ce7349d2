"""The drills by name."""

from collections.abc import Callable
from typing import Final

from kvtrail_engine.drills.base import Drill
from kvtrail_engine.drills.long_prefill import LongPrefill
from kvtrail_engine.drills.nvme_queue import NvmeQueue
from kvtrail_engine.drills.nvme_slow import NvmeSlow
from kvtrail_engine.errors import SettingsError

NO_DRILL: Final = "none"

_DRILLS: Final[dict[str, Callable[[int], Drill]]] = {
    "nvme-slow": lambda _seed: NvmeSlow(),
    "nvme-queue": NvmeQueue,
    "long-prefill": LongPrefill,
}

DRILL_NAMES: Final[tuple[str, ...]] = (NO_DRILL, *_DRILLS)


def make_drill(name: str, seed: int) -> Drill | None:
    """The drill of this name; None for `none`.

    Raises:
        SettingsError: there is no such drill.
    """
    if name == NO_DRILL:
        return None
    if name not in _DRILLS:
        message = f"there is no drill {name}; there are {', '.join(DRILL_NAMES)}"
        raise SettingsError(message)
    return _DRILLS[name](seed)
