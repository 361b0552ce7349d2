"""How long ago something was, for people."""

from typing import Final

_NS_PER_S: Final = 1_000_000_000
_STEPS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))
_TWICE: Final = 2


def age(then_ns: int | None, now_ns: int) -> str:
    """An age in the largest unit of which there are two at least; clocks that disagree make no negative ones."""
    if then_ns is None:
        return "never"
    seconds = max(now_ns - then_ns, 0) / _NS_PER_S
    for length, unit in _STEPS:
        if seconds >= _TWICE * length:
            return f"{seconds / length:,.0f} {unit} ago"
    return f"{seconds:.0f} s ago" if seconds >= 1 else "just now"
