"""The life of a copy: which facts may follow which, as a table, and a pure fold from events to states.

A copy is one physical place of a block: (block, tier, slot). It is absent, being filled, readable, or invalidated. What
the table does not list is a violation; the fold reports it and goes on with the state that the event claims, so that
one broken fact does not hide the next.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple

from kvtrail_schema import events as e
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, NamespaceId, OpId, RequestId, Slot


class CopyState(Enum):
    """What can be said of one place of one block."""

    ABSENT = "absent"
    FILLING = "filling"
    READABLE = "readable"
    INVALIDATED = "invalidated"


class Fact(Enum):
    """What an event does to a copy."""

    CREATE = "create"
    FILL_BEGIN = "fill_begin"
    FILL_END = "fill_end"
    FILL_FAIL = "fill_fail"
    READ = "read"
    PIN = "pin"
    UNPIN = "unpin"
    LEAVE = "leave"
    INVALIDATE = "invalidate"


LEGAL: Final[dict[tuple[CopyState, Fact], CopyState]] = {
    (CopyState.ABSENT, Fact.CREATE): CopyState.READABLE,
    (CopyState.ABSENT, Fact.FILL_BEGIN): CopyState.FILLING,
    (CopyState.ABSENT, Fact.FILL_END): CopyState.READABLE,
    (CopyState.ABSENT, Fact.FILL_FAIL): CopyState.ABSENT,
    (CopyState.FILLING, Fact.FILL_BEGIN): CopyState.FILLING,
    (CopyState.FILLING, Fact.FILL_END): CopyState.READABLE,
    (CopyState.FILLING, Fact.FILL_FAIL): CopyState.ABSENT,
    (CopyState.FILLING, Fact.LEAVE): CopyState.ABSENT,
    (CopyState.FILLING, Fact.INVALIDATE): CopyState.INVALIDATED,
    (CopyState.READABLE, Fact.READ): CopyState.READABLE,
    (CopyState.READABLE, Fact.PIN): CopyState.READABLE,
    (CopyState.READABLE, Fact.UNPIN): CopyState.READABLE,
    (CopyState.READABLE, Fact.LEAVE): CopyState.ABSENT,
    (CopyState.READABLE, Fact.INVALIDATE): CopyState.INVALIDATED,
    (CopyState.INVALIDATED, Fact.CREATE): CopyState.READABLE,
    (CopyState.INVALIDATED, Fact.FILL_FAIL): CopyState.INVALIDATED,
    (CopyState.INVALIDATED, Fact.UNPIN): CopyState.INVALIDATED,
    (CopyState.INVALIDATED, Fact.LEAVE): CopyState.INVALIDATED,
}
"""Every legal step: a state and a fact give the next state."""

_CLAIMED: Final[dict[Fact, CopyState]] = {
    Fact.CREATE: CopyState.READABLE,
    Fact.FILL_BEGIN: CopyState.FILLING,
    Fact.FILL_END: CopyState.READABLE,
    Fact.FILL_FAIL: CopyState.ABSENT,
    Fact.READ: CopyState.READABLE,
    Fact.PIN: CopyState.READABLE,
    Fact.UNPIN: CopyState.READABLE,
    Fact.LEAVE: CopyState.ABSENT,
    Fact.INVALIDATE: CopyState.INVALIDATED,
}

_FACT_OF: Final[dict[type[e.Event], Fact]] = {
    e.BlockCreated: Fact.CREATE,
    e.AttentionRead: Fact.READ,
    e.BlockPinned: Fact.PIN,
    e.BlockUnpinned: Fact.UNPIN,
    e.Evicted: Fact.LEAVE,
    e.Invalidated: Fact.INVALIDATE,
    e.SwapInQueued: Fact.FILL_BEGIN,
    e.SwapInStarted: Fact.FILL_BEGIN,
    e.SwapInLoaded: Fact.FILL_END,
    e.SwapInFailed: Fact.FILL_FAIL,
    e.SwapOutQueued: Fact.FILL_BEGIN,
    e.SwapOutStarted: Fact.FILL_BEGIN,
    e.SwapOutWritten: Fact.FILL_END,
    e.SwapOutFailed: Fact.FILL_FAIL,
}


class CopyKey(NamedTuple):
    """One physical place of a block."""

    block: BlockId
    tier: Tier
    slot: Slot


@dataclass(frozen=True, slots=True)
class Copy:
    """The state of one copy, since when, and who holds it; `op` is the transfer that fills it."""

    state: CopyState = CopyState.ABSENT
    since_ns: int = 0
    op: OpId | None = None
    refs: int = 0
    last_reader: RequestId | None = None
    ns: NamespaceId | None = None


class Violation(NamedTuple):
    """A fact that may not follow the state it met."""

    key: CopyKey
    state: CopyState
    fact: Fact
    seq: int


class Folded(NamedTuple):
    """States of all copies that were ever named, and every violation on the way."""

    copies: Mapping[CopyKey, Copy]
    violations: tuple[Violation, ...]


def fold(events: Iterable[e.Event], start: Folded | None = None) -> Folded:
    """Fold events, in seq order, into the state of each copy. Pure; about a microsecond an event; keeps no event.

    Folding a stream in two parts, the second from the result of the first, gives the same as folding it at once.
    """
    copies = dict(start.copies) if start else {}
    violations = list(start.violations) if start else []
    filling = {key: copy.op for key, copy in copies.items() if copy.state is CopyState.FILLING}
    for event in events:
        if isinstance(event, e.TierCleared):
            _clear(copies, filling, event)
        for key in _keys_of(event, filling):
            copy, broken = _apply(copies.get(key, Copy()), key, event)
            violations.extend(broken)
            copies[key] = copy
            _note(filling, key, copy)
    return Folded(copies, tuple(violations))


def _note(filling: dict[CopyKey, OpId | None], key: CopyKey, copy: Copy) -> None:
    """Keep the index of copies that are being filled, by the op that fills them; there are few at any moment."""
    if copy.state is CopyState.FILLING:
        filling[key] = copy.op
    else:
        filling.pop(key, None)


def _keys_of(event: e.Event, filling: Mapping[CopyKey, OpId | None]) -> list[CopyKey]:
    """The copies that an event changes: one or none. A failed transfer names no place: its op and block find it."""
    if isinstance(event, e.SwapInFailed | e.SwapOutFailed):
        return [key for key, op in filling.items() if op == event.op and event.block in {None, key.block}]
    key = _key_of(event)
    return [] if key is None else [key]


def _key_of(event: e.Event) -> CopyKey | None:
    """The copy that an event changes: the destination of a transfer, the named place otherwise."""
    if type(event) not in _FACT_OF:
        return None
    block, slot = getattr(event, "block", None), getattr(event, "slot", None)
    tier = getattr(event, "tier", None) if hasattr(event, "tier") else getattr(event, "dst", None)
    return None if block is None or tier is None or slot is None else CopyKey(block, tier, slot)


def _apply(copy: Copy, key: CopyKey, event: e.Event) -> tuple[Copy, list[Violation]]:
    """The next state of one copy, and the violation if the table does not allow the step."""
    fact = _FACT_OF[type(event)]
    legal = LEGAL.get((copy.state, fact))
    broken = [] if legal is not None else [Violation(key, copy.state, fact, event.seq)]
    state = _claimed(copy.state, fact) if legal is None else legal
    since_ns = copy.since_ns if state is copy.state else event.t_ns
    ns = getattr(event, "ns", None)
    op = getattr(event, "op", None) if state is CopyState.FILLING else None
    held = Copy() if state is CopyState.ABSENT else copy
    moved = replace(held, state=state, since_ns=since_ns, op=op, ns=copy.ns if ns is None else ns)
    if isinstance(event, e.BlockPinned | e.BlockUnpinned):
        moved = replace(moved, refs=event.refs)
    if isinstance(event, e.AttentionRead):
        moved = replace(moved, last_reader=event.req)
    return moved, broken


def _claimed(state: CopyState, fact: Fact) -> CopyState:
    """The state after a fact that the table does not allow. Nobody's read makes an invalidated copy valid again."""
    kept = state is CopyState.INVALIDATED and fact in {Fact.READ, Fact.PIN}
    return state if kept else _CLAIMED[fact]


def _clear(copies: dict[CopyKey, Copy], filling: dict[CopyKey, OpId | None], event: e.TierCleared) -> None:
    """Every copy in the tier ends; where a namespace is named, only the copies known to belong to it."""
    for key, copy in copies.items():
        named = event.ns is None or copy.ns == event.ns
        if named and key.tier is event.tier and copy.state is not CopyState.INVALIDATED:
            copies[key] = Copy(CopyState.ABSENT, event.t_ns, ns=copy.ns)
            filling.pop(key, None)
