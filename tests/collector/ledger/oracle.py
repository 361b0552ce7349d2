"""The ledger by the book: cut at every border, ask the rules of each piece in turn. Slow, obvious, and separate."""

from itertools import pairwise

from kvtrail_collector.facts import Direction, Op, OpEnd, RequestFacts, State
from kvtrail_collector.ledger_layout import Segment, chunk_segments, op_segments, wait_label, waiting_segments
from kvtrail_collector.ledger_parts import UNATTRIBUTED, Component, Label
from kvtrail_schema.enums import Reason

_FOREVER = 2**63 - 1


def amounts_by_the_book(facts: RequestFacts) -> dict[Label, int]:
    """What each label owns of a request's interval, without those that own nothing."""
    found: dict[Label, int] = {}
    for low, high in pairwise(_borders(facts)):
        owner = _owner(facts, low, high)
        found[owner] = found.get(owner, 0) + high - low
    return {label: ns for label, ns in found.items() if ns}


def _borders(facts: RequestFacts) -> list[int]:
    """Every border of every fact inside the interval, and its own ends."""
    times = [facts.arrived_ns, facts.end_ns]
    times += [change.t_ns for change in facts.states]
    for start, end in (*facts.lookups, *facts.timeline.busy, *facts.timeline.unknown, *facts.timeline.holes):
        times += [start, end]
    for wait in facts.waits:
        times += [wait.start_ns, wait.end_ns]
    for segment in (*chunk_segments(facts.chunks), *(segment for op in facts.ops for segment in _laid_out(facts, op))):
        times += [segment.start_ns, segment.end_ns]
    times += [op.closing_ns for op in facts.ops if op.closing_ns is not None]
    return sorted({t_ns for t_ns in times if facts.arrived_ns <= t_ns <= facts.end_ns})


def _laid_out(facts: RequestFacts, op: Op) -> list[Segment]:
    """An op as segments; one that is still queued by now has only a queue."""
    still_queued = op.end is OpEnd.OPEN and op.started_ns is None and facts.censored
    return waiting_segments(op) if still_queued else op_segments(op)


def _owner(facts: RequestFacts, low: int, high: int) -> Label:
    """The first rule that applies to a piece."""
    if any(start <= low and high <= end for start, end in facts.timeline.holes):
        return UNATTRIBUTED
    state, reason = _state(facts, low)
    for owner in (
        _waited(facts, low, high, kv_load=state is State.WAITING and reason is Reason.KV_LOAD),
        _covering(chunk_segments(facts.chunks), low, high),
        _load(facts, low, high) if state is State.ADMITTED else None,
        Label(Component.LOOKUP) if any(start <= low and high <= end for start, end in facts.lookups) else None,
        wait_label(reason) if state is not State.ADMITTED else None,
    ):
        if owner is not None:
            return owner
    return _idle(facts, low, high)


def _state(facts: RequestFacts, t_ns: int) -> tuple[State, Reason | None]:
    """The state in force: the last change so far; of several at one instant, the one told last."""
    known = [change for change in sorted(facts.states, key=lambda change: change.t_ns) if change.t_ns <= t_ns]
    return (known[-1].state, known[-1].reason) if known else (State.WAITING, None)


def _waited(facts: RequestFacts, low: int, high: int, *, kv_load: bool) -> Label | None:
    """Rule 1."""
    named = [wait.op for wait in facts.waits if wait.start_ns <= low and high <= wait.end_ns]
    if kv_load:
        named.append(None)
    if not named:
        return None
    ops = [op for op in facts.ops if op.op in named or (None in named and op.direction is Direction.LOAD)]
    part = _last_part(facts, ops, low, high)
    if part is not None:
        return part
    closed = any(op.closing_ns is not None and op.closing_ns <= low for op in ops)
    return Label(Component.DEFERRED if closed else Component.COPY_WAIT)


def _load(facts: RequestFacts, low: int, high: int) -> Label | None:
    """Rule 3."""
    return _last_part(facts, [op for op in facts.ops if op.direction is Direction.LOAD], low, high)


def _last_part(facts: RequestFacts, ops: list[Op], low: int, high: int) -> Label | None:
    """The part, in this piece, of the op that ends last of those that cover it."""
    parts = [(op, part) for op in ops if (part := _covering(_laid_out(facts, op), low, high)) is not None]
    if not parts:
        return None
    return max(parts, key=lambda pair: (pair[0].closing_ns or _FOREVER, pair[0].queued_ns, -pair[0].op))[1]


def _covering(segments: list[Segment], low: int, high: int) -> Label | None:
    """The label of the first segment that covers a piece."""
    return next((segment.label for segment in segments if segment.start_ns <= low and high <= segment.end_ns), None)


def _idle(facts: RequestFacts, low: int, high: int) -> Label:
    """Rule 6, and 7 where a step's end was lost."""
    if any(start <= low and high <= end for start, end in facts.timeline.unknown):
        return UNATTRIBUTED
    busy = any(start <= low and high <= end for start, end in facts.timeline.busy)
    return Label(Component.BUDGET if busy else Component.STALLED)


__all__ = ["amounts_by_the_book"]
