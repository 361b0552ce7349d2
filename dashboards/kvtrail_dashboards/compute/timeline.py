"""One request as a waterfall: parts end to end, and the work that they covered up beside it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kvtrail_dashboards.answers import Part, TokenGap, WaitedOn, Why
from kvtrail_dashboards.compute.event import EventLink, link_of_chain
from kvtrail_dashboards.compute.families import Family, family_of, label_of
from kvtrail_dashboards.compute.names import Names

MAX_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class Bar:
    """One part: from where to where it is drawn, in ms, and its share of the whole."""

    label: str
    family: Family
    start_ms: float
    end_ms: float
    ms: float
    share: float


@dataclass(frozen=True, slots=True)
class WaitLine:
    """An operation that was in service while the request stood in a queue; none at all is `idle`."""

    op: str
    tier: str
    owner: str
    ms: float


@dataclass(frozen=True, slots=True)
class GapLine:
    """One of the slowest waits between two tokens, with what made most of it."""

    step: int
    ms: float
    mostly: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """What is shown of one request. `waterfall` adds up to `total_ms`; `hidden` does not add up to anything.

    A link of the chain without a name is a cause that is not stored.
    """

    request: str
    censored: bool
    total_ms: float
    waterfall: tuple[Bar, ...]
    hidden: tuple[Bar, ...]
    waited_on: tuple[WaitLine, ...]
    gaps: tuple[GapLine, ...]
    chain: tuple[EventLink, ...]
    recompute_estimate_ms: float | None


def timeline_of(why: Why, names: Names | None = None) -> Timeline:
    """Lay out one request, with tenants by the operator's names.

    The ledger has no places in time, so parts stand in its order, one after the other.
    """
    total_ns = sum(part.ns for part in why.parts)
    return Timeline(
        request=str(why.request),
        censored=why.censored,
        total_ms=total_ns / 1e6,
        waterfall=tuple(_end_to_end(why.parts, total_ns)),
        hidden=tuple(_bar(part, 0, total_ns) for part in sorted(why.hidden, key=lambda part: -part.ns)),
        waited_on=tuple(_wait(wait, names or {}) for wait in sorted(why.waited_on, key=lambda wait: -wait.ns)[:MAX_LINES]),
        gaps=tuple(_gap(gap) for gap in sorted(why.gaps, key=lambda gap: -gap.ns)[:MAX_LINES]),
        chain=tuple(link_of_chain(link) for link in why.chain[:MAX_LINES]),
        recompute_estimate_ms=None if why.recompute_estimate_ns is None else why.recompute_estimate_ns / 1e6,
    )


def _end_to_end(parts: Iterable[Part], total_ns: int) -> Iterable[Bar]:
    """Parts in the order of the ledger, each where the one before ends."""
    start_ns = 0
    for part in parts:
        yield _bar(part, start_ns, total_ns)
        start_ns += part.ns


def _bar(part: Part, start_ns: int, total_ns: int) -> Bar:
    """One part as a bar."""
    return Bar(
        label=label_of(part.component, part.tier, part.reason),
        family=family_of(part.component),
        start_ms=start_ns / 1e6,
        end_ms=(start_ns + part.ns) / 1e6,
        ms=part.ns / 1e6,
        share=part.ns / total_ns if total_ns else 0.0,
    )


def _wait(wait: WaitedOn, names: Names) -> WaitLine:
    """One wait as a line."""
    op = "none" if wait.op is None else str(wait.op)
    return WaitLine(
        op, wait.tier or "", names.get(wait.owner or "", (wait.owner or "not known").replace("_", " ")), wait.ns / 1e6
    )


def _gap(gap: TokenGap) -> GapLine:
    """One gap as a line."""
    largest = max(gap.parts, key=lambda part: part.ns, default=None)
    mostly = "" if largest is None else label_of(largest.component, largest.tier, largest.reason)
    return GapLine(gap.step, gap.ns / 1e6, mostly)
