"""The life of a block: where copies of it lay, from when to when, what ended them, and where a gap hides that.

Pure functions over the rows that name the block, those at the same places, and what cleared whole tiers.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec
from kvtrail_schema.enums import Reason, Tier
from kvtrail_schema.identity import Stream
from kvtrail_schema.kinds import Kind

from kvtrail_collector.attribution_shapes import Window
from kvtrail_collector.facts_rows import Interval, merged
from kvtrail_collector.ledger_parts import TIER_NAMES
from kvtrail_collector.why_chain import Link

_MADE: Final = frozenset({Kind.BLOCK_CREATED, Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN})
_ENDED: Final = frozenset({Kind.EVICTED, Kind.INVALIDATED})
_TAKES_ALL: Final = frozenset({Kind.TIER_CLEARED, Kind.AGENT_STOPPED})
_WORDS: Final = {Kind.EVICTED: "evicted", Kind.INVALIDATED: "invalidated", Kind.AGENT_STOPPED: "process ended"}
_REASONS: Final = {reason.value: reason.name.lower() for reason in Reason}
_TIERS: Final = {tier.value: name for tier, name in TIER_NAMES.items()}
_LASTING: Final = frozenset({Tier.NVME.value, Tier.REMOTE.value})
FOREVER_NS: Final = 2**63 - 1
"""The end of a stretch that nothing ends."""


class CopyState(StrEnum):
    """What is known of a copy at the moment that was asked for; without one, where what is told of its process ends."""

    RESIDENT = "resident"
    GONE = "gone"
    UNKNOWN = "unknown"


class Copy(msgspec.Struct, frozen=True):
    """One stay of a copy in one place. `from_ns` is None where its making is not stored, `to_ns` while nothing ended it.

    `epoch` is that of the process that told of it first: a copy on NVMe or in a remote store outlives it, and may be ended by
    a later one of the same engine and rank. Where the machine began anew meanwhile, `to_ns` may be smaller than `from_ns`.
    """

    engine: str
    epoch: int
    rank: int
    tier: str | None
    slot: int | None
    from_ns: int | None
    to_ns: int | None
    ended_by: str | None
    state: CopyState


class BlockLife(msgspec.Struct, frozen=True, kw_only=True):
    """The life of a block, or where each copy was at `at_ns`; `unknown` are the stretches that holes hide.

    `block` is its hash, sixteen hexadecimal digits.
    """

    block: str
    at_ns: int | None
    copies: tuple[Copy, ...]
    chain: tuple[Link, ...]
    unknown: tuple[Window, ...]
    schema: int = 1
    device: str | None = None


class Mark(NamedTuple):
    """One event at a place that the block was in; `own` where it names the block, else another block, or a whole tier.

    `AGENT_STOPPED` stands for the end of a process, which takes the memories that it held with it. `heard` counts streams in
    the order in which they were heard of first: the clock of a later process may have begun anew.
    """

    stream: Stream
    t_ns: int
    seq: int
    kind: int
    tier: int | None
    slot: int | None
    reason: int | None
    own: bool
    heard: int


class _Stay:
    """A copy while its life is read. Used by one thread."""

    def __init__(self, mark: Mark, from_ns: int | None) -> None:
        self.stream, self.tier, self.slot = mark.stream, mark.tier, mark.slot
        self.from_ns, self.to_ns = from_ns, None if from_ns is not None else mark.t_ns
        self.ended_by: str | None = None
        self.seen_ns = [mark.t_ns]

    def is_at(self, mark: Mark) -> bool:
        """Whether an event may be about the place of this copy: a whole tier is, and so is any slot where one is not told.

        What names another block is about the slot that it names, and about no slot that is not told.
        """
        is_there = mark.slot in {None, self.slot} or (mark.own and self.slot is None)
        return is_there and self.tier == mark.tier and holder_of(self.stream, self.tier) == holder_of(mark.stream, mark.tier)

    def shown(self, state: CopyState) -> Copy:
        """The stay as it is told."""
        tier = None if self.tier is None else _TIERS.get(self.tier)
        home = self.stream
        place = (home.engine, home.epoch, home.rank, tier, self.slot)
        return Copy(*place, self.from_ns, self.to_ns, self.ended_by, state)

    def see(self, mark: Mark) -> None:
        """Note that it was there; what was seen of it may tell its slot, if nothing else did."""
        self.seen_ns.append(mark.t_ns)
        self.slot = mark.slot if self.slot is None else self.slot

    def end(self, mark: Mark, by: str) -> None:
        """End it."""
        self.to_ns, self.ended_by = mark.t_ns, by


def holder_of(stream: Stream, tier: int | None) -> tuple[str, int, int | None]:
    """Whose places those of a tier are: a process's memory is its own, NVMe and remote places stay those of engine and rank."""
    return (stream.engine, stream.rank, None if tier in _LASTING else stream.epoch)


def copies_of(marks: Sequence[Mark], holes: Mapping[Stream, Sequence[Interval]], at_ns: int | None) -> tuple[Copy, ...]:
    """Every stay of every copy, or with `at_ns` those that may be there then; by process, in the order of their beginning."""
    stays: list[_Stay] = []
    for mark in sorted(marks, key=lambda mark: (mark.heard, mark.t_ns, mark.seq)):
        _read(stays, mark)
    shown = [(stay, _state(stay, _hiding(stay, holes), at_ns)) for stay in stays]
    return tuple(stay.shown(state) for stay, state in shown if at_ns is None or state is not CopyState.GONE)


def _hiding(stay: _Stay, holes: Mapping[Stream, Sequence[Interval]]) -> list[Interval]:
    """The holes that can hide the end of a copy: those of whoever can end it."""
    own = holder_of(stay.stream, stay.tier)
    return [hole for stream, hidden in holes.items() if holder_of(stream, stay.tier) == own for hole in hidden]


def _read(stays: list[_Stay], mark: Mark) -> None:
    """Let one event begin, confirm or end stays."""
    there = [stay for stay in stays if stay.to_ns is None and stay.is_at(mark)]
    there = [stay for stay in there if stay.slot == mark.slot] or there
    if mark.kind in _MADE:
        for stay in there:
            stay.end(mark, "superseded")
        if mark.own:
            stays.append(_Stay(mark, mark.t_ns))
    elif mark.kind in _TAKES_ALL or (mark.own and mark.kind in _ENDED):
        for stay in there:
            stay.end(mark, _ending(mark))
        if not there and mark.own:
            stays.append(_Stay(mark, None))
            stays[-1].ended_by = _ending(mark)
    elif mark.own:
        for stay in there:
            stay.see(mark)


def _ending(mark: Mark) -> str:
    """What ended a copy, in words."""
    what = _WORDS.get(Kind(mark.kind), "cleared")
    reason = _REASONS.get(mark.reason) if mark.reason is not None else None
    return f"{what} ({reason})" if reason else what


def _state(stay: _Stay, holes: Sequence[Interval], at_ns: int | None) -> CopyState:
    """What is known of a copy at a moment, or now.

    A hole between the last sign of a copy and that moment may hide its end, unless a later sign shows that it was there.
    """
    at_ns = FOREVER_NS if at_ns is None else at_ns
    if stay.to_ns is not None and at_ns >= stay.to_ns:
        return CopyState.GONE
    if stay.from_ns is not None and at_ns < stay.from_ns:
        return CopyState.GONE if stay.to_ns is None or stay.from_ns <= stay.to_ns else CopyState.UNKNOWN
    signs = [*stay.seen_ns, *([stay.to_ns] if stay.to_ns is not None and stay.ended_by != "superseded" else [])]
    if stay.from_ns is not None and any(sign >= at_ns for sign in signs):
        return CopyState.RESIDENT
    last = max((sign for sign in signs if sign <= at_ns), default=None)
    hidden = last is None or any(start < at_ns and end > last for start, end in holes)
    return CopyState.UNKNOWN if hidden else CopyState.RESIDENT


def unknown_of(holes: Mapping[Stream, Sequence[Interval]], marks: Sequence[Mark]) -> tuple[Window, ...]:
    """The stretches in the life of a block, on engines that named it, in which events are missing; the last may have no end."""
    first: dict[str, int] = {}
    for mark in (mark for mark in marks if mark.own):
        first[mark.stream.engine] = min(mark.t_ns, first.get(mark.stream.engine, mark.t_ns))
    known = [(stream, hole) for stream, hidden in holes.items() for hole in hidden if stream.engine in first]
    spans = merged(hole for stream, hole in known if hole[1] > first[stream.engine])
    return tuple(Window(start, end, 0, 0.0) for start, end in spans)
