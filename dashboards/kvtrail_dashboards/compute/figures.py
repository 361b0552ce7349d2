"""Figures for people: units taken from the end of a name, shares as percent, nothing with more digits than it deserves."""

from collections.abc import Mapping
from typing import Final

from kvtrail_dashboards.answers import Figure
from kvtrail_dashboards.compute.bytes import size

_UNITS: Final = {
    "_ns_per_kib": "ns/KiB",
    "_bytes_per_s": "bytes/s",
    "_per_s": "/s",
    "_ms": "ms",
    "_us": "µs",
    "_ns": "ns",
    "_s": "s",
    "_bytes": "bytes",
    "_tokens": "tokens",
    "_pct": "%",
}
_NS_PER_MS: Final = 1_000_000
_MIB: Final = 1 << 20
_MS_OF_SECONDS: Final = 10_000
_MS_OF_MINUTES: Final = 600_000
_MS_OF_HOURS: Final = 7_200_000
_LARGE: Final = 100
_ALL: Final = 100
_LEAST_SHOWN: Final = 0.05
_NEARLY_ALL: Final = 99
_SHORT_OF_ALL: Final = 99.9


def percent(share: float | None) -> str:
    """A share of 0 to 1; never rounded up to certainty."""
    if share is None:
        return "not known"
    value = share * 100
    if 0 < value < _LEAST_SHOWN:
        return "under 0.1 %"
    if 0 < value < 1 or _NEARLY_ALL < value < _ALL:
        return f"{min(value, _SHORT_OF_ALL):.1f} %"
    return f"{value:.0f} %"


def times(ratio: Figure | None) -> str:
    """A ratio as `3.2 times`; empty where there is none."""
    return f"{ratio:.1f} times" if isinstance(ratio, float | int) and ratio > 0 else ""


def duration(ms: float) -> str:
    """A duration with about three digits; one that is less than nothing, as an excess may be, has its sign."""
    if ms < 0:
        return f"-{duration(-ms)}"
    if ms >= _MS_OF_HOURS:
        return f"{ms / 3_600_000:,.1f} h"
    if ms >= _MS_OF_MINUTES:
        return f"{ms / 60_000:.1f} min"
    if ms >= _MS_OF_SECONDS:
        return f"{ms / 1_000:,.1f} s"
    if ms >= _LARGE or ms == 0:
        return f"{ms:,.0f} ms"
    return f"{ms:.1f} ms" if ms >= 1 else f"{ms * 1_000:.0f} µs"


def evidence_lines(evidence: Mapping[str, Figure | None]) -> tuple[tuple[str, str], ...]:
    """Name and value of each figure, with its unit, in the order given."""
    return tuple(_line(name, value) for name, value in evidence.items() if value is not None and value != "")


def with_unit(name: str, value: float) -> str:
    """A figure with the unit that its name ends in; nanoseconds of a million and more are told in ms."""
    suffix = _suffix(name)
    if suffix == "_ns" and abs(value) >= _NS_PER_MS:
        return f"{value / _NS_PER_MS:,.1f} ms"
    if suffix == "_bytes" and abs(value) >= _MIB:
        return size(int(value))
    if name.endswith("_share"):
        return percent(value)
    return f"{_number(value)} {_UNITS.get(suffix, '')}".strip()


def _line(name: str, value: Figure) -> tuple[str, str]:
    """One figure; a share is called one, other units stand with the figure alone."""
    if isinstance(value, str):
        return name.replace("_", " "), value
    told = name.removesuffix(_suffix(name)).replace("_", " ")
    return told or name, with_unit(name, value)


def _suffix(name: str) -> str:
    """The unit that a name ends in, or nothing."""
    return next((suffix for suffix in _UNITS if name.endswith(suffix)), "")


def _number(value: float) -> str:
    """A number without digits that mean nothing."""
    if isinstance(value, int) or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= _LARGE else f"{value:.3g}"
