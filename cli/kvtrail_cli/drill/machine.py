"""How busy others kept the machine during a run: an engine that is starved looks ill, and no drill did it."""

import os
from pathlib import Path
from typing import Final, NamedTuple, Self

_STAT: Final = Path("/proc/stat")
_IDLE: Final = (3, 4)
_OF_TIME: Final = 8
"""The columns behind these count guests, whose time stands in the ones before too."""


class CpuTimes(NamedTuple):
    """Seconds of all processors so far: all of them, those in which anybody worked, those in which we and our children did."""

    total_s: float
    busy_s: float
    own_s: float

    @classmethod
    def now(cls) -> Self | None:
        """As the system counts them; None where it does not say."""
        if not _STAT.exists():
            return None
        first = _STAT.read_text(encoding="ascii").splitlines()[0].split()[1 : 1 + _OF_TIME]
        ticks = [int(word) / os.sysconf("SC_CLK_TCK") for word in first]
        total = sum(ticks)
        return cls(total, total - sum(ticks[place] for place in _IDLE), sum(os.times()[:4]))


def others_share(before: CpuTimes | None, after: CpuTimes | None) -> float | None:
    """The share of all processors' time that others took in between; None where it is not known."""
    if before is None or after is None or after.total_s <= before.total_s:
        return None
    others_s = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    return min(max(others_s / (after.total_s - before.total_s), 0.0), 1.0)
