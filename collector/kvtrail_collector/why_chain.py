"""From a slow request back to what began it: causes, walked by the ids that the engine drew."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
import numpy as np
from kvtrail_schema.enums import Reason
from kvtrail_schema.kinds import Kind

from kvtrail_collector.attribution_shapes import EventRef
from kvtrail_collector.facts import RequestFacts
from kvtrail_collector.facts_build import Recording
from kvtrail_collector.facts_rows import NO_ID, BoolArray, Rows
from kvtrail_collector.ledger_parts import TIER_NAMES

MAX_LINKS: Final = 32
_MAX_STARTS: Final = 8
_KINDS: Final = {kind.value: kind.name.lower().replace("_", " ") for kind in Kind}
_REASONS: Final = {reason.value: reason.name.lower() for reason in Reason}
_TIERS: Final = {tier.value: name for tier, name in TIER_NAMES.items()}


class Link(msgspec.Struct, frozen=True):
    """One event in a chain of causes, what it says, and when it was; `event` and `t_ns` are None for one that is not stored."""

    event: EventRef | None
    text: str
    t_ns: int | None = None


def chain_of(recording: Recording, facts: RequestFacts) -> tuple[Link, ...]:
    """The causes behind a request's events, each event followed by what caused it; at most 32."""
    rows = recording.rows
    own = (rows.stream == recording.rows.streams.index(facts.timeline.stream)) & (rows.ids["req"] == np.uint64(facts.request))
    caused = np.flatnonzero(own & (rows.ids["cause"] != NO_ID))
    _, first = np.unique(rows.ids["cause"][caused], return_index=True)
    return links_from(rows, np.sort(caused[first])[:_MAX_STARTS].tolist())


def links_from(rows: Rows, starts: Iterable[int]) -> tuple[Link, ...]:
    """Events, each followed by what caused it, as far as that was not told already; at most 32."""
    seen: set[int] = set()
    links = [link for start in starts if start not in seen for link in _walk(rows, start, seen)]
    return tuple(links[:MAX_LINKS])


def _walk(rows: Rows, start: int, seen: set[int]) -> Iterator[Link]:
    """An event, its cause, the cause of that, until there is none, it is not known, or it was told already."""
    place: int | None = start
    while place is not None and place not in seen:
        seen.add(place)
        yield Link(_ref(rows, place), describe(rows, place), int(rows.t_ns[place]))
        cause = rows.ids["cause"][place]
        if cause == NO_ID:
            return
        found = np.flatnonzero((rows.ids["id"] == cause) & _of_process(rows, place))
        if not len(found):
            yield Link(None, f"caused by event {int(cause)}, which is not stored")
            return
        place = int(found[0])


def _of_process(rows: Rows, place: int) -> BoolArray:
    """The rows of the same engine and epoch: each process counts its ids from one."""
    own = rows.streams[int(rows.stream[place])]
    same = np.array([(one.engine, one.epoch) == (own.engine, own.epoch) for one in rows.streams])
    return np.asarray(same[rows.stream])


def _ref(rows: Rows, place: int) -> EventRef:
    """The name of an event."""
    home = rows.streams[int(rows.stream[place])]
    return EventRef(home.engine, home.epoch, home.rank, int(rows.seq[place]))


def describe(rows: Rows, place: int) -> str:
    """An event in a few words: its kind, block, tiers and reason."""
    words = [_KINDS.get(int(rows.kind[place]), "event of a newer kind")]
    if rows.ids["block"][place] != NO_ID:
        words.append(f"block {int(rows.ids['block'][place]):016x}")
    words.append(_tiers(rows, place))
    if (reason := _REASONS.get(int(rows.ints["reason"][place]))) is not None:
        words.append(f"({reason})")
    return " ".join(word for word in words if word)


def _tiers(rows: Rows, place: int) -> str:
    """The tiers that an event speaks of."""
    tier, src, dst = (_TIERS.get(int(rows.ints[name][place])) for name in ("tier", "src", "dst"))
    return f"{src}→{dst}" if src and dst else tier or ""
