"""The excess of the tail by component and tier: the largest bars, and one that sums up the rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kvtrail_dashboards.answers import Attribution, BlameRow, Delta
from kvtrail_dashboards.compute.families import Family, family_of, label_of
from kvtrail_dashboards.compute.names import Names, name_of

MAX_BARS: Final = 8
MAX_BLAME_ROWS: Final = 10
_IDLE: Final = "idle"
"""A queue was waited in while nothing was in service."""


@dataclass(frozen=True, slots=True)
class ExcessBar:
    """How much more the tail of the window has of one component, in ms. Without an interval where none is known."""

    label: str
    family: Family
    excess_ms: float
    low_ms: float | None
    high_ms: float | None
    share: float | None


@dataclass(frozen=True, slots=True)
class BlameLine:
    """Whose work was in service while others waited in a queue."""

    queue: str
    tenant: str
    kind: str
    waited_ms: float
    share: float | None


def excess_bars(attribution: Attribution) -> tuple[ExcessBar, ...]:
    """The largest excesses first, whichever their sign; what is left is one bar, so that all bars add up."""
    ordered = sorted(attribution.components, key=lambda delta: (-abs(delta.excess_ms), delta.component, delta.tier or ""))
    shown, rest = ordered[:MAX_BARS], ordered[MAX_BARS:]
    bars = sorted((_bar(delta) for delta in shown), key=lambda bar: -bar.excess_ms)
    return (*bars, *([_rest(rest)] if rest else []))


def blame_lines(rows: Sequence[BlameRow], names: Names | None = None) -> tuple[BlameLine, ...]:
    """The work that held up most, first."""
    ordered = sorted(rows, key=lambda row: -row.waited_ns)[:MAX_BLAME_ROWS]
    return tuple(BlameLine(row.queue, _whose(row, names or {}), row.kind, row.waited_ns / 1e6, row.share) for row in ordered)


def _whose(row: BlameRow, names: Names) -> str:
    """The tenant whose work was in the way; nobody's where none was."""
    return "" if row.kind == _IDLE else name_of(names, row.tenant)


def _bar(delta: Delta) -> ExcessBar:
    """One component as a bar."""
    return ExcessBar(
        label=label_of(delta.component, delta.tier),
        family=family_of(delta.component),
        excess_ms=delta.excess_ms,
        low_ms=delta.low_ms,
        high_ms=delta.high_ms,
        share=delta.share,
    )


def _rest(deltas: Sequence[Delta]) -> ExcessBar:
    """The small ones together. Intervals do not add up, so it has none."""
    shares = [delta.share for delta in deltas if delta.share is not None]
    total = sum(delta.excess_ms for delta in deltas)
    return ExcessBar(f"{len(deltas)} more together", Family.UNATTRIBUTED, total, None, None, sum(shares) if shares else None)
