"""Stretches of time cut into buckets that people can read: a second, five, a minute; never more of them than asked for."""

from typing import Any, Final

_SECOND_NS: Final = 1_000_000_000
_WIDTHS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400)


def bucket_ns(extent: tuple[Any, ...] | None, points: int) -> int:
    """The narrowest bucket with which an extent, a row of first and last moment, has at most so many."""
    first_ns, last_ns = extent or (None, None)
    if first_ns is None or last_ns is None:
        return _SECOND_NS
    span_ns = max(last_ns - first_ns, 1)
    fitting = (seconds * _SECOND_NS for seconds in _WIDTHS_S if span_ns // (seconds * _SECOND_NS) < points)
    return next(fitting, -(-span_ns // points // _SECOND_NS) * _SECOND_NS)
