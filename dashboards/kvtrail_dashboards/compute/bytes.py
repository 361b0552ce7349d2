"""Sizes for people."""

import math
from typing import Final

_STEP_BITS: Final = 10
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_TEN: Final = 10


def size(count: int | None) -> str:
    """A size with two or three digits and its unit."""
    if count is None:
        return "not said"
    step = min(int(math.log2(max(count, 1))) // _STEP_BITS, len(_UNITS) - 1)
    value = count / (1 << (_STEP_BITS * step))
    return f"{value:,.0f} {_UNITS[step]}" if step == 0 or value >= _TEN else f"{value:,.1f} {_UNITS[step]}"
